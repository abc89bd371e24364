// What a page shows: loading, fresh, stale or failed, and asked again when something happened.

import { h, put, text } from "./dom.js";
import { span } from "./format.js";
import { live, tick } from "./live.js";

const SOON_MS = 250; // Several events of one poll lead to one question.

// Keeps something fresh. It asks again when a message matters (`event`, `poll`, `targets`, `kv` say so), never within
// `least`, and after `every` for what no message tells of.
export function watch(page, { load, show, every = 30_000, least = SOON_MS, place = page.place, ...news }) {
	let timer = 0;
	let asking = false;
	let again = false;
	let waiting = false;
	let fetched = 0;
	let failed = null;
	let greyed = null;
	const stop = new AbortController();
	const banner = h("p.state.loading", { role: "status" }, "Loading…");
	const since = h("span.num");

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
				soon(again ? SOON_MS : failed ? 3_000 : every);
				again = false;
			}
		}
	}

	// Several may watch beside each other: what one of them shows is stale until all are fresh.
	function grey(is) {
		const around = place.parentElement ?? greyed;
		if (!around) return;
		greyed = around;
		around.stale ??= new Set();
		around.stale[is ? "add" : "delete"](stop);
		around.classList.toggle("is-stale", around.stale.size > 0);
	}

	// Loading, failed and stale are said where the data would be.
	function say() {
		banner.remove();
		grey(Boolean(failed && fetched));
		if (!failed) return;
		if (fetched) put(banner, `Stale: ${failed.message}. What is shown is `, since, " old and is asked for again.");
		else put(banner, h("strong", "This cannot be shown. "), `${failed.message}. ${hint(failed)}`);
		banner.className = fetched ? "state stale" : "state failed";
		place.prepend(banner);
	}

	function later() {
		if (waiting) return;
		waiting = true;
		setTimeout(() => {
			waiting = false;
			if (!stop.signal.aborted) run();
		}, Math.max(SOON_MS, fetched + least - performance.now()));
	}

	page.end(tick(() => failed && fetched && text(since, span(performance.now() - fetched))));
	page.end(live.on("back", () => soon(0)));
	for (const [name, matters] of Object.entries(news)) page.end(live.on(name, (message) => matters(message) && later()));
	page.end(() => {
		stop.abort();
		clearTimeout(timer);
		grey(false);
	});
	place.prepend(banner);
	run();
	return { again: () => soon(0), later };
}

function hint({ status }) {
	return { 0: "Is it running? It is asked again every few seconds.", 403: "Sign in with another token.", 404: "It may be gone." }[status] ?? "The log says more.";
}

// A designed emptiness: what is not there, and what to do.
export function nothing(title, ...words) {
	return h("div.state.empty", h("strong", title), h("p", ...words));
}

export function unconfigured(name, toml) {
	return nothing(`No ${name} source is configured.`, "Add this to stakeout.toml and start again: ", h("code", toml), ". Or see it at work with ", h("code", "stakeout demo"), ".");
}
