// What rings, wherever you are: a toast, a sound that can be switched off, and how much nobody has read.

import { get } from "./api.js";
import { h, sign, text } from "./dom.js";
import { time } from "./format.js";
import { clock, live } from "./live.js";

const OLD_MS = 60_000; // What comes by again after a break is listed and counted, not rung one by one.
const TOGETHER_MS = 500;
const STAYS_MS = 15_000;
const MOST = 4;

export const SEVERITY = { info: ["●", "accent"], warning: ["▲", "warn"], critical: ["✕", "bad"] };

export const sound = {
	get on() {
		try {
			return localStorage.getItem("sound") !== "off";
		} catch {
			return true;
		}
	},
	set on(yes) {
		try {
			localStorage.setItem("sound", yes ? "on" : "off");
		} catch {
			// It cannot be remembered here.
		}
	},
};

let audio = null;

function beep(critical) {
	// A browser lets a page be heard only after somebody has used it.
	if (!sound.on || !navigator.userActivation?.hasBeenActive) return;
	audio ??= new AudioContext();
	const [tone, volume, begin] = [audio.createOscillator(), audio.createGain(), audio.currentTime];
	tone.frequency.setValueAtTime(critical ? 1047 : 784, begin);
	tone.frequency.setValueAtTime(critical ? 784 : 1047, begin + 0.12);
	volume.gain.setValueAtTime(0.12, begin);
	volume.gain.exponentialRampToValueAtTime(0.001, begin + 0.35);
	tone.connect(volume).connect(audio.destination);
	tone.start(begin);
	tone.stop(begin + 0.35);
}

function toast({ data, seq }) {
	const place = document.getElementById("toasts");
	const [shape, tone] = SEVERITY[data.severity] ?? SEVERITY.info;
	const close = () => node.remove();
	const node = h("div.toast", { "data-seq": seq, "data-severity": data.severity }, sign(shape, tone),
		h("div", h("b", data.title), h("p", data.text)), h("a", { href: "/alerts", click: close }, "Alerts"), h("button.quiet", { "aria-label": `Close: ${data.title}`, click: close }, "✕"));
	place.append(node);
	while (place.children.length > MOST) place.firstChild.remove();
	// What must be looked at stays until somebody has. Where nobody looks, time does not count.
	const leave = () => document.hidden
		? document.addEventListener("visibilitychange", leave, { once: true })
		: setTimeout(close, STAYS_MS);
	if (data.severity !== "critical") leave();
}

// A tab that nobody sees gives its stream back, and a connection may break: what rang meanwhile is one toast, however much
// it is.
const missed = { count: 0, last: null, critical: false, timer: 0 };

function miss(event) {
	missed.count += 1;
	missed.last = event;
	missed.critical ||= event.data.severity === "critical";
	clearTimeout(missed.timer);
	missed.timer = setTimeout(() => {
		const { count, last, critical } = missed;
		Object.assign(missed, { count: 0, last: null, critical: false });
		const title = `${count} ${count === 1 ? "alert" : "alerts"} while you were away`;
		const severity = critical ? "critical" : "info";
		toast({ seq: last.seq, data: { severity, title, text: count === 1 ? last.data.title : `The last: ${last.data.title}` } });
	}, TOGETHER_MS);
}

// How much nobody has read; the page of alerts says when that changed.
async function count() {
	const { unread } = await get("/v1/notifications?limit=1");
	const link = document.querySelector("#pages a[href='/alerts']");
	let badge = link.querySelector(".badge");
	if (!badge) link.insertBefore((badge = h("span.badge")), link.querySelector("kbd"));
	badge.hidden = !unread;
	text(badge, unread > 99 ? "99+" : unread);
	badge.setAttribute("aria-label", `${unread} unread`);
}

export function toasts() {
	let timer = 0;
	const soon = () => {
		clearTimeout(timer);
		timer = setTimeout(() => count().catch(() => {}), 200);
	};
	live.on("back", soon);
	document.addEventListener("notifications-read", soon);
	live.on("event", (event) => {
		if (event.type !== "alert.raised") return;
		soon();
		if ((clock.now() - time(event.at)) / clock.speed > OLD_MS) return miss(event);
		toast(event);
		beep(event.data.severity === "critical");
	});
}
