// Making elements, and updating them without rebuilding what did not change.

const still = matchMedia("(prefers-reduced-motion: reduce)");

// An element: `h("a.row", { href }, "text", child)`, with or without properties; functions among them listen.
export const h = (tag, ...rest) => make("http://www.w3.org/1999/xhtml", tag, rest);
export const s = (tag, ...rest) => make("http://www.w3.org/2000/svg", tag, rest);

const there = (children) => children.flat().filter((child) => child != null && child !== false);

function make(space, tag, rest) {
	const [name, ...classes] = tag.split(".");
	const node = document.createElementNS(space, name);
	if (classes.length) node.setAttribute("class", classes.join(" "));
	const given = rest[0]?.constructor === Object;
	const children = given ? rest.slice(1) : rest;
	for (const [name, value] of Object.entries(given ? rest[0] : {})) {
		if (typeof value === "function") node.addEventListener(name, value);
		else if (value === true) node.setAttribute(name, "");
		else if (value !== false && value != null) node.setAttribute(name, value);
	}
	node.append(...there(children));
	return node;
}

// Sets the text of a node if it is another one; `tell` lets the change fade from a tint, with the old value on hover.
export function text(node, value, tell = false) {
	value = value == null ? "" : String(value);
	const old = node.textContent;
	if (old === value) return false;
	node.textContent = value;
	if (tell && node.dataset.shown) {
		if (tell !== "quiet") node.title = `was ${old || "empty"}`;
		tint(node);
	}
	node.dataset.shown = "1";
	return true;
}

// Motion means change, and nothing else moves.
export function tint(node) {
	if (still.matches || document.hidden) return;
	// In steps: a fade in every frame would paint the page sixty times a second.
	node.animate([{ backgroundColor: "var(--tint)" }, { backgroundColor: "transparent" }], { duration: 2000, easing: "steps(12)" });
}

export function attr(node, name, value) {
	if (value == null || value === false) {
		if (node.hasAttribute(name)) node.removeAttribute(name);
	} else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

export function cls(node, value) {
	if (node.className !== value) node.className = value;
}

// Brings children in line with a list: one per key, in order. Those whose key stays are kept, so focus and scroll stay.
export function keyed(parent, items, keyOf, make, update) {
	const known = (parent.keyed ??= new Map());
	const seen = new Set();
	let place = parent.firstChild;
	for (const item of items) {
		const key = keyOf(item);
		if (seen.has(key)) continue;
		seen.add(key);
		let child = known.get(key);
		if (!child) {
			child = make(item);
			known.set(key, child);
		}
		update?.(child, item);
		if (child === place) place = place.nextSibling;
		else parent.insertBefore(child, place);
	}
	for (const [key, child] of known) {
		if (!seen.has(key)) {
			known.delete(key);
			child.remove();
			child.gone?.();
		}
	}
}

// What became of what was asked for.
export const saying = () => h("span.says", { role: "status" });

// A shape that says what the words beside it say.
export const sign = (shape, tone) => h(`span.${tone}`, { "aria-hidden": "true" }, shape);

// A part of a page under a heading, which also names it; a list that comes first stands beside the heading.
export function panel(name, ...children) {
	const heading = h("h2", name);
	const bar = Array.isArray(children[0]) ? h("div.bar", heading, ...children.shift()) : heading;
	return h("section.panel", { "aria-label": name }, bar, ...children);
}

export function put(node, ...children) {
	node.keyed = undefined;
	node.replaceChildren(...there(children));
	return node;
}

// Names and what they are at the moment.
export function facts(list, pairs) {
	keyed(list, pairs, ([name]) => name, ([name]) => h("div", h("dt", name), h("dd.num")), (node, [, value]) => {
		if (!(value instanceof Node)) text(node.lastChild, value);
		else if (!value.isConnected) node.lastChild.append(value);
	});
}

// A part that scrolls, for the keyboard, too. No landmark: the panel around it often goes by the same name.
export const scroll = (classes, name, ...children) => h(`div.scroll${classes}`, { tabindex: "0", role: "group", "aria-label": name }, ...children);

export function say(words) {
	const place = document.getElementById("say");
	if (place) text(place, words);
}

// What is not on the screen is not ticked and not drawn: a board may have hundreds of rows.
const watcher = new IntersectionObserver((entries) => entries.forEach(({ target, isIntersecting }) => target.onseen?.(isIntersecting)), { rootMargin: "120px" });

export function seen(node, callback) {
	node.onseen = callback;
	watcher.observe(node);
}

export function unseen(node) {
	watcher.unobserve(node);
}
