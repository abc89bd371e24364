// The stream, and the server's clock.
//
// Read by hand, not with EventSource: the cursor is ours, so a break of any length resumes after the last event seen.

import { time } from "./format.js";

const SILENCE_MS = 20_000; // A pulse comes every second: after this the connection is dead, whatever the socket says.
const WAITS_MS = [500, 1_000, 2_000, 4_000, 8_000];

const listeners = new Map();
// A listener that fails is a fault of its own: neither the others nor the stream have to do with it.
const emit = (name, value) => listeners.get(name)?.forEach((listener) => {
	try {
		listener(value);
	} catch (error) {
		console.error(error);
	}
});

export const live = {
	// `connecting`, `live`, `reconnecting`, `paused` (nobody looks) or `refused`.
	state: "connecting",
	// A browser has six connections to a server, for all tabs together: one that nobody has seen for so long gives its
	// stream back, and resumes where it was when it is seen again.
	hidden_ms: 30_000,
	cursor: null,
	since: performance.now(),

	// Listens to messages of the stream, to `state`, or to `back`: look at everything anew. Answers how to stop.
	on(name, listener) {
		if (!listeners.has(name)) listeners.set(name, new Set());
		listeners.get(name).add(listener);
		return () => listeners.get(name).delete(listener);
	},

	start() {
		run();
		addEventListener("online", () => wake?.());
		document.addEventListener("visibilitychange", look);
		// A page that was left may be kept for the way back, with its connection: it gives that back at once.
		addEventListener("pagehide", rest);
		addEventListener("pageshow", look);
		look();
	},

	// Begins anew at once, as somebody else perhaps.
	again() {
		stream?.abort();
		wake?.();
	},
};

let wake = null;
let stream = null;
let asleep = false;
let unseen = 0;

function look() {
	clearTimeout(unseen);
	asleep = false;
	if (!document.hidden) return wake?.();
	unseen = setTimeout(rest, live.hidden_ms);
}

function rest() {
	clearTimeout(unseen);
	asleep = true;
	stream?.abort();
}

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
		if (asleep) {
			become("paused");
			await new Promise((resolve) => (wake = resolve));
		}
		const status = await once(() => {
			failures = 0;
			clock.known = false;
			become("live");
			// What was read before the stream began may be older than it.
			emit("back", connected);
			connected = true;
		});
		if (status === 401) {
			document.dispatchEvent(new CustomEvent("signed-out"));
			become("refused");
		} else if (asleep) {
			continue;
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

// Reads one stream until it breaks; answers the status of a refusal.
async function once(opened) {
	const abort = (stream = new AbortController());
	let silence = setTimeout(() => abort.abort(), SILENCE_MS);
	try {
		const after = live.cursor == null ? "" : `&after=${live.cursor}`;
		const response = await fetch(`/v1/events/stream?polls=all${after}`, { signal: abort.signal, cache: "no-store" });
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
	} catch (error) {
		// That nobody answers, or no longer, is shown; anything else is a fault.
		if (!["AbortError", "TypeError"].includes(error.name)) console.error(error);
		return 0;
	} finally {
		clearTimeout(silence);
	}
}

const FIELDS = [/^event: (.*)$/m, /^id: (.*)$/m, /^data: (.*)$/m];

function take(message) {
	const [name, id, data] = FIELDS.map((field) => message.match(field)?.[1]);
	if (!data) return;
	const value = JSON.parse(data);
	const seen = live.cursor;
	if (id && name !== "event") live.cursor = name === "resync" ? Number(id) : Math.max(seen ?? 0, Number(id));
	if (name === "resync") return emit("back", true);
	if (name === "event") {
		// Told once: what comes by again after a break is known.
		if (seen != null && value.seq <= seen) return;
		live.cursor = value.seq;
	}
	if (name === "pulse") clock.learn(value);
	emit(name, value);
}

// The server's engine time, which runs faster than life in a demonstration.
export const clock = {
	speed: 1,
	at: Date.now(),
	when: performance.now(),
	known: false,

	now() {
		return this.at + (performance.now() - this.when) * this.speed;
	},

	// A pulse is always a little late: the one that was least so counts, until the clocks have drifted apart.
	learn({ now, speed }) {
		const ahead = time(now) - this.now();
		if (this.known && ahead < 0 && ahead > -500 * this.speed) return;
		Object.assign(this, { speed: speed ?? 1, at: time(now), when: performance.now(), known: true });
	},
};

const ticking = new Set();
let frame = 0;
let last = 0;

/** Calls back ten times a second, or every so many milliseconds, while the page is seen; answers how to stop. One clock
 * for everything that counts. */
export function tick(callback, every = 0) {
	let called = performance.now();
	const due = (now, at) => {
		if (at - called < every) return;
		called = at;
		callback(now);
	};
	ticking.add(due);
	callback(clock.now());
	if (!frame) frame = requestAnimationFrame(beat);
	return () => ticking.delete(due);
}

function beat(at) {
	frame = ticking.size ? requestAnimationFrame(beat) : 0;
	if (at - last < 95) return;
	last = at;
	const now = clock.now();
	ticking.forEach((callback) => callback(now, at));
}
