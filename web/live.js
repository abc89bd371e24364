// The event stream, and the server's clock.
//
// The stream is read by hand instead of with EventSource: the cursor is ours, so a break of any length (a restart of the
// server, a laptop that slept) resumes at the event after the last one seen, and the page always knows its state.

import { can } from "./api.js";
import { time } from "./format.js";

const SILENCE_MS = 40_000; // Heartbeats come every 15 s: after this the connection is dead, whatever the socket says.
const WAITS_MS = [500, 1_000, 2_000, 4_000, 8_000];

const listeners = { event: new Set(), poll: new Set(), kv: new Set(), state: new Set(), back: new Set() };
const emit = (name, value) => listeners[name].forEach((listener) => listener(value));

export const live = {
	/** `connecting`, `live`, `reconnecting` or `refused`. */
	state: "connecting",
	/** The sequence number of the last event seen. */
	cursor: null,
	/** Whether the server tells of every poll. */
	polls: false,
	/** Published values, by `namespace/key`. */
	kv: new Map(),
	/** The newest events, the newest first. */
	recent: [],
	since: performance.now(),

	/** Listens to `event`, `poll`, `kv`, `state` or `back` (look at everything anew); answers how to stop. */
	on(name, listener) {
		listeners[name].add(listener);
		return () => listeners[name].delete(listener);
	},

	start() {
		run();
		addEventListener("online", () => wake?.());
		document.addEventListener("visibilitychange", () => document.hidden || wake?.());
	},

	/** Ends the wait and tries at once. */
	retry: () => wake?.(),
};

let wake = null;

function become(state) {
	if (live.state === state) return;
	live.state = state;
	live.since = performance.now();
	emit("state", state);
}

async function run() {
	let failures = 0;
	let connected = false;
	for (;;) {
		const wantsPolls = await can("/v1/events/stream", "polls");
		const outcome = await once(wantsPolls, () => {
			const again = connected;
			connected = true;
			failures = 0;
			live.polls = wantsPolls;
			become("live");
			if (again) emit("back");
		});
		if (outcome === 401) {
			document.dispatchEvent(new CustomEvent("signed-out"));
			become("refused");
		} else become(connected ? "reconnecting" : "connecting");
		const wait = WAITS_MS[Math.min(failures, WAITS_MS.length - 1)];
		failures += 1;
		await new Promise((resolve) => {
			wake = resolve;
			setTimeout(resolve, wait * (0.8 + Math.random() * 0.4));
		});
		wake = null;
	}
}

/** Reads one stream until it breaks; answers the status of a refusal. */
async function once(wantsPolls, opened) {
	const abort = new AbortController();
	let silence = setTimeout(() => abort.abort(), SILENCE_MS);
	try {
		const query = new URLSearchParams();
		if (wantsPolls) query.set("polls", "all");
		if (live.cursor != null) query.set("after", live.cursor);
		const response = await fetch(`/v1/events/stream?${query}`, {
			headers: { accept: "text/event-stream" },
			signal: abort.signal,
			cache: "no-store",
		});
		if (!response.ok) return response.status;
		opened();
		const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
		let rest = "";
		for (;;) {
			const { done, value } = await reader.read();
			if (done) return 0;
			clearTimeout(silence);
			silence = setTimeout(() => abort.abort(), SILENCE_MS);
			const messages = (rest + value).split("\n\n");
			rest = messages.pop();
			messages.forEach(take);
		}
	} catch {
		return 0;
	} finally {
		clearTimeout(silence);
	}
}

function take(message) {
	let name = "message";
	let id = null;
	let data = "";
	for (const line of message.split("\n")) {
		if (line.startsWith("event: ")) name = line.slice(7);
		else if (line.startsWith("id: ")) id = Number(line.slice(4));
		else if (line.startsWith("data: ")) data += line.slice(6);
	}
	if (!data) return;
	const value = JSON.parse(data);
	if (name === "event") {
		// Told once: what comes by again after a break is known.
		if (live.cursor != null && value.seq <= live.cursor) return;
		live.recent.unshift(value);
		live.recent.length = Math.min(live.recent.length, 200);
		live.cursor = value.seq;
		emit("event", value);
	} else if (name === "poll") emit("poll", value);
	else if (name === "kv") {
		live.kv.set(`${value.namespace}/${value.key}`, value);
		emit("kv", value);
	} else if (name === "resync") {
		live.cursor = id;
		emit("back");
	} else if (id != null) live.cursor = Math.max(live.cursor ?? 0, id);
}

/** The server's engine time, which runs faster than life in a demonstration. */
export const clock = {
	speed: 1,
	at: Date.now(),
	when: performance.now(),
	known: false,
	first: null,

	/** What time it is for the engine, in milliseconds. */
	now() {
		return this.at + (performance.now() - this.when) * this.speed;
	},

	/** Learns from an answer of `/v1/health`: asked at `sent`, answered at `got`, both of the page's clock. */
	learn(health, sent, got) {
		const at = time(health.now);
		const when = (sent + got) / 2;
		const doubt = got - sent;
		if (this.first && at < this.first.at) this.first = null; // Another process, another clock.
		if (health.speed) this.speed = health.speed;
		else if (!this.first || (doubt < this.first.doubt / 2 && when - this.first.when < 2_000)) this.first = { at, when, doubt };
		else if (when - this.first.when > 10 * (doubt + this.first.doubt)) {
			const measured = (at - this.first.at) / (when - this.first.when);
			const whole = Math.round(measured);
			// Speeds are given in whole numbers; what is off by less than a twentieth is noise.
			if (measured > 0) this.speed = whole > 0 && Math.abs(measured - whole) < 0.05 * whole ? whole : measured;
		}
		this.at = at;
		this.when = when;
		this.known = true;
	},
};

const ticking = new Set();
let frame = 0;
let last = 0;

/** Calls back ten times a second while the page is seen; answers how to stop. One clock for everything that counts. */
export function tick(callback) {
	ticking.add(callback);
	callback(clock.now());
	if (!frame) frame = requestAnimationFrame(beat);
	return () => ticking.delete(callback);
}

function beat(at) {
	frame = ticking.size ? requestAnimationFrame(beat) : 0;
	if (at - last < 95) return;
	last = at;
	const now = clock.now();
	ticking.forEach((callback) => callback(now));
}
