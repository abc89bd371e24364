// What is not on the screen is not ticked and not drawn: a board may have hundreds of rows.

const watcher = new IntersectionObserver((entries) => entries.forEach(({ target, isIntersecting }) => target.onseen?.(isIntersecting)), { rootMargin: "120px" });

/** Calls back when a node comes on the screen, and when it leaves. */
export function seen(node, callback) {
	node.onseen = callback;
	watcher.observe(node);
}

export function unseen(node) {
	watcher.unobserve(node);
}
