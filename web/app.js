// Addresses to pages, keys, the theme, and what is always to be seen: the connection and the server's time.

import { attr, change, clock, get, h, live, nothing, put, say, second, span, text, tick } from "./kit.js";
import { forgetColours } from "./parts/canvas.js";
import { toasts } from "./toasts.js";
import * as alerts from "./pages/alerts.js";
import * as events from "./pages/events.js";
import * as fpv from "./pages/fpv.js";
import * as health from "./pages/health.js";
import * as now from "./pages/now.js";
import * as race from "./pages/race.js";
import * as racing from "./pages/racing.js";
import * as settings from "./pages/settings.js";
import * as signin from "./pages/signin.js";
import * as tables from "./pages/tables.js";
import * as target from "./pages/target.js";
import * as venue from "./pages/venue.js";

const PAGES = {
	"/": now, "/racing": racing, "/race": race, "/fpv": fpv, "/tables": tables, "/venue": venue,
	"/events": events, "/alerts": alerts, "/target": target, "/health": health, "/settings": settings, "/sign-in": signin,
};
const RAIL = [
	["/", "Now", "n"], ["/racing", "Racing", "r"], ["/fpv", "FPV", "f"], ["/tables", "Tables", "t"],
	["/events", "Events", "e"], ["/alerts", "Alerts", "a"], ["/health", "Health", "h"], ["/settings", "Settings", "s"],
];
const BELONGS = { "/race": "/racing", "/venue": "/tables", "/target": "/" };
const $ = (id) => document.getElementById(id);

let open = null;

// What a page can do: end with it, read and change its address.
class Page {
	query = new URLSearchParams(location.search);
	abort = new AbortController();
	ends = [];
	place = h("div");
	keys = {};
	signal = this.abort.signal;

	get = (name) => this.query.get(name);
	end = (callback) => this.ends.push(callback);

	// Changes one part of the address; the page is opened anew unless `quiet`.
	set(name, value, quiet = false) {
		if (value == null) this.query.delete(name);
		else this.query.set(name, value);
		const query = String(this.query);
		const url = location.pathname + (query ? `?${query}` : "");
		history[quiet ? "replaceState" : "pushState"](null, "", url);
		if (!quiet) show(true);
	}

	// What the page is made of, below the place where it is said what is wrong.
	put(...children) {
		put($("main"), this.place, ...children);
	}

	// The source and what the address names of it.
	needs(what, from, name) {
		const found = [this.get("source"), this.get(name)];
		if (found.every(Boolean)) return found;
		put($("main"), nothing(`No ${what} is named.`, h("a", { href: from }, "Choose one.")));
		return [];
	}

	title(words) {
		text($("title"), words);
		document.title = `${words} – Stakeout`;
	}

	close() {
		this.abort.abort();
		this.ends.forEach((end) => end());
	}
}

function show(same = false) {
	const module = PAGES[location.pathname];
	const scroll = same ? scrollY : 0;
	open?.close();
	open = new Page();
	document.body.className = "";
	const main = $("main");
	put(main);
	if (module) {
		open.title(module.title);
		module.mount(main, open);
	} else {
		open.title("Not here");
		put(main, h("p.state.empty", `There is no page at ${location.pathname}. `, h("a", { href: "/" }, "See what is polled now.")));
	}
	const here = BELONGS[location.pathname] ?? location.pathname;
	document.querySelectorAll("#pages a").forEach((link) => attr(link, "aria-current", link.pathname === here ? "page" : null));
	if (same) scrollTo(0, scroll);
	else {
		scrollTo(0, 0);
		// Whoever was somewhere on the page before begins at its title, unless the page knows better.
		if (document.activeElement !== document.body && !main.contains(document.activeElement)) $("title").focus({ preventScroll: true });
	}
}

function go(url) {
	if (url === location.pathname + location.search) return;
	history.pushState(null, "", url);
	show();
}

function links() {
	document.addEventListener("click", (event) => {
		const link = event.target.closest?.("a[href]");
		if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || link.target) return;
		if (link.origin !== location.origin || !(link.pathname in PAGES) || link.hash) return;
		event.preventDefault();
		go(link.pathname + link.search);
	});
	addEventListener("popstate", () => show());
	document.addEventListener("signed-out", () => {
		if (location.pathname !== "/sign-in") go(`/sign-in?to=${encodeURIComponent(location.pathname + location.search)}`);
	});
}

function walk(step) {
	const rows = [...document.querySelectorAll("main .row, main .feed li a")].filter((row) => row.offsetParent);
	const at = rows.indexOf(document.activeElement);
	const next = rows[at < 0 ? (step > 0 ? 0 : rows.length - 1) : at + step];
	next?.focus();
	next?.scrollIntoView({ block: "nearest" });
}

function keys() {
	let went = 0;
	document.addEventListener("keydown", (event) => {
		if (event.metaKey || event.ctrlKey || event.altKey) return;
		const typing = event.target.closest?.("input, textarea, select");
		if (typing) {
			if (event.key === "Escape") event.target.blur();
			return;
		}
		if ($("help").open) return;
		const page = performance.now() - went < 1500 && RAIL.find(([, , key]) => key === event.key);
		went = 0;
		if (page) go(page[0]);
		else if (event.key === "g") went = performance.now();
		else if (event.key === "j" || event.key === "k") walk(event.key === "j" ? 1 : -1);
		else if (event.key === "/") document.querySelector("[data-filter]")?.focus();
		else if (event.key === "?") $("help").showModal();
		else if (open.keys[event.key] && !event.target.closest?.(".scroll, .tip-box")) open.keys[event.key]();
		else return;
		event.preventDefault();
	});
}

function help() {
	const rows = [
		["g, then the letter", RAIL.map(([, name, key]) => `${key} ${name}`).join(" · ")],
		["j k", "next and previous row"], ["← →", "previous and next race, or value of a drawing"], ["v", "win, place or odds, on a race"],
		["w", "wall mode, on FPV"], ["/", "filter"], ["Esc", "leave the filter"], ["?", "this list"],
	];
	const close = h("button", { click: () => $("help").close() }, "Close");
	put($("help"), h("h2", { id: "help-title" }, "Keys"), h("dl", ...rows.flatMap(([key, words]) => [h("dt", key), h("dd", words)])), close);
	$("help-open").addEventListener("click", () => $("help").showModal());
}

function theme() {
	const names = ["auto", "light", "dark"];
	const { dataset } = document.documentElement;
	const render = () => {
		text($("theme"), dataset.theme ?? "auto");
		attr($("theme"), "aria-label", `Theme: ${dataset.theme ?? "auto"}`);
	};
	$("theme").addEventListener("click", () => {
		dataset.theme = names[(names.indexOf(dataset.theme ?? "auto") + 1) % 3];
		try {
			localStorage.setItem("theme", dataset.theme);
		} catch {
			// It holds until the page is left, then.
		}
		if (dataset.theme === "auto") delete dataset.theme;
		forgetColours();
		render();
	});
	render();
}

function connection() {
	const chip = $("link");
	const render = () => {
		const away = performance.now() - live.since;
		const words = { live: "● live", connecting: "○ connecting", reconnecting: "△ reconnecting", paused: "◌ paused", refused: "✕ signed out" }[live.state];
		const wait = live.state === "reconnecting" && away > 1000 ? ` ${span(Math.floor(away / 1000) * 1000)}` : "";
		attr(chip, "data-state", live.state);
		if (!wait) text(chip, words);
		else if (chip.lastChild?.nodeName === "SPAN") text(chip.lastChild, wait);
		else put(chip, words, h("span", { "aria-hidden": "true" }, wait));
		document.body.classList.toggle("offline", live.state === "reconnecting");
	};
	live.on("state", render);
	tick((now) => {
		render();
		if (clock.known) text($("clock"), second(now) + (clock.speed === 1 ? "" : ` ×${Math.round(clock.speed * 10) / 10}`));
	});
	live.on("state", (state) => state === "reconnecting" && say("The connection is lost. What is shown is getting old."));
	live.on("back", (again) => again && say("The connection is back; everything is up to date."));
}

// Who came with a token can go without closing the browser; the server forgets them, and their streams end.
function session() {
	const button = $("sign-out");
	const look = () => get("/v1/session").then(({ needs_token: needed, scope }) => (button.hidden = !needed || !scope), () => {});
	button.addEventListener("click", async () => {
		await change("DELETE", "/v1/session").catch(() => {});
		button.hidden = true;
		live.again();
		go("/sign-in");
	});
	live.on("back", look);
	document.addEventListener("signed-out", () => (button.hidden = true));
}

put($("pages"), ...RAIL.map(([url, name, key]) => h("li", h("a", { href: url, "aria-keyshortcuts": `g ${key}` }, name, h("kbd", { "aria-hidden": "true" }, key)))));
links();
keys();
help();
theme();
connection();
session();
toasts();
live.start();
show();
