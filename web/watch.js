// What a page shows: loading, fresh, stale or failed, and asked again when something happened.

import { h, put, text } from "./dom.js";
import { span } from "./format.js";
import { live, tick } from "./live.js";

const SOON_MS = 250; // Several events of one poll lead to one question.

/**
 * Keeps something fresh. `load(signal)` asks, `show(data)` shows; `every` asks again after so many milliseconds at the
 * latest, `on(event)` and `poll(message)` say which news make it ask soon, but never within `least`. The place says what is wrong, if anything.
 */
export function watch(page, { load, show, every = 30_000, least = SOON_MS, on, poll, kv, place }) {
	let timer = 0;
	let asking = false;
	let again = false;
	let shown = false;
	let fetched = 0;
	let failed = null;
	const stop = new AbortController();
	const note = h("p.state.loading", { role: "status" }, "Loading…");

	const soon = (ms) => {
		clearTimeout(timer);
		timer = setTimeout(run, ms);
	};

	async function run() {
		if (asking) {
			again = true;
			return;
		}
		asking = true;
		try {
			const data = await load(stop.signal);
			if (stop.signal.aborted) return;
			failed = null;
			fetched = performance.now();
			shown = true;
			say();
			show(data);
		} catch (error) {
			if (stop.signal.aborted) return;
			if (error.status === undefined) console.error(error);
			failed = error;
			say();
		} finally {
			asking = false;
			if (!stop.signal.aborted) {
				soon(again ? SOON_MS : document.hidden ? Math.max(every, 5_000) : failed ? Math.min(every, 3_000) : every);
				again = false;
			}
		}
	}

	/** Loading, failed and stale are said where the data would be. */
	function say() {
		note.remove();
		if (!place) return;
		place.parentElement?.classList.toggle("is-stale", Boolean(failed && shown));
		if (!failed) {
			banner.remove();
			return;
		}
		const words = shown ? `Stale: ${failed.message}. What is shown is ` : `${failed.message}.`;
		put(banner, h("strong", shown ? "" : "This cannot be shown. "), words);
		if (shown) banner.append(since, " old and is asked for again.");
		else banner.append(" ", hint(failed));
		banner.className = shown ? "state stale" : "state failed";
		place.prepend(banner);
	}
	const banner = h("p.state", { role: "status" });
	const since = h("span.num");
	const untick = tick(() => failed && shown && text(since, span(performance.now() - fetched)));

	const stops = [
		untick,
		live.on("back", () => soon(0)),
		on && live.on("event", (event) => on(event) && later()),
		poll && live.on("poll", (message) => poll(message) && later()),
		kv && live.on("kv", (row) => kv(row) && later()),
		() => stop.abort(),
		() => clearTimeout(timer),
	];
	let waiting = false;
	function later() {
		if (waiting) return;
		waiting = true;
		setTimeout(() => {
			waiting = false;
			if (!stop.signal.aborted) run();
		}, Math.max(SOON_MS, fetched + least - performance.now()));
	}
	place?.prepend(note);
	page.end(() => stops.forEach((end) => end?.()));
	run();
	return { again: () => soon(0), soon };
}

/** What to do about it. */
function hint(error) {
	if (error.status === 0) return "Is it running? It is asked again every few seconds.";
	if (error.status === 403) return "Sign in with a token that may do this.";
	if (error.status === 404) return "It may be gone; the list it came from knows.";
	return "The log says more.";
}

/** A designed emptiness: what is not there, and what to do. */
export function nothing(title, ...words) {
	return h("div.state.empty", h("strong", title), h("p", ...words));
}
