// A target's line: its phases as a band, its polls as marks, the next one as a thin countdown.

import { attr, h } from "../dom.js";
import { plural, second, span, time, word } from "../format.js";
import { canvas, colour, done, timeAxis, tipped } from "./canvas.js";

const MARKS_MAX = 600;
export const GLANCE_MS = 1_200_000;
const CORNERS = { triangle: [[0, -1], [1, 1], [-1, 1]], diamond: [[0, -1], [1, 0], [0, 1], [-1, 0]], cross: [[-1, -1], [1, 1], [0, 0], [1, -1], [-1, 1]] };

// A drawing of `{ from, to, now, runs, polls, due }` in milliseconds; `tall` has an axis, names, and values on hover.
export function track(page, tall = false) {
	let data = null;
	let hits = [];
	const node = canvas(tall ? "track tall" : "track", (context, width, height) => data && (hits = draw(context, width, height, data, tall)));
	page.end(() => done(node));
	const update = (next) => {
		data = next;
		attr(node, "aria-label", describe(data));
		node.drawing();
	};
	// The last twenty minutes and the next six, for a line among others; `past` are stretches before the one that goes on.
	const glance = (now, { due, run }, polls, past = []) =>
		(node.isSeen || !data) && update({ from: now - GLANCE_MS, to: now + 360_000, now, due: time(due), runs: [...past, ...(run ? [run] : [])].map(stretch), polls });
	if (!tall) return { node, glance };
	return { update, node: tipped(node, (x) => {
		const near = hits.reduce((best, hit) => (Math.abs(hit.x - x) < Math.abs((best?.x ?? 1e9) - x) ? hit : best), null);
		return near && Math.abs(near.x - x) <= 8 ? near : null;
	}) };
}

function describe({ runs, polls, due, now }) {
	const [total, late, missed] = ["polls", "late", "missed"].map((name) => runs.reduce((sum, run) => sum + run[name], 0));
	const failed = polls.filter((poll) => poll.outcome === "failed").length;
	const next = due == null ? "no next poll" : `next poll in ${span(Math.max(0, due - now))}`;
	return `${plural(total, "poll")}, ${late} late, ${missed} missed, ${failed} failed; ${next}`;
}

function draw(context, width, height, data, tall) {
	const { from, to, now } = data;
	const x = (at) => ((at - from) / (to - from)) * width;
	const foot = tall ? height - 18 : height;
	const middle = tall ? foot * 0.55 : foot / 2;
	const hits = [];
	context.fillStyle = colour("line");
	context.fillRect(0, middle - 0.5, width, 1);
	bands(context, data, x, foot, width, tall);
	if (tall) timeAxis(context, width, height - 3, from, to, x);
	for (const mark of marks(data)) {
		const at = x(mark.at);
		if (at < -4 || at > width + 4) continue;
		paint(context, at, middle, tall ? 7 : 4, mark);
		if (mark.lines) hits.push({ x: at, lines: mark.lines });
	}
	if (now >= from && now <= to) {
		context.fillStyle = colour("soft");
		context.fillRect(Math.round(x(now)), 0, 1, foot);
	}
	if (data.due != null && data.due <= to && data.due >= from) {
		const at = Math.round(x(data.due));
		context.fillStyle = colour("accent");
		context.fillRect(at, 1, 2, foot - 2);
		context.fillRect(Math.min(x(now), at), middle - 1, Math.abs(at - x(now)), 2);
		hits.push({ x: at, lines: ["next poll", second(data.due)] });
	}
	return hits.sort((a, b) => a.x - b.x);
}

// One band per stretch of regular polling; every other phase is a shade darker.
function bands(context, { runs, from, to }, x, foot, width, tall) {
	let shade = 0;
	let before = null;
	for (const run of runs) {
		if (run.to < from || run.from > to) continue;
		if (before !== null && before !== run.phase) shade = 1 - shade;
		before = run.phase;
		const left = Math.max(0, x(run.from));
		const right = Math.max(left + 1, Math.min(width, x(run.to)));
		context.fillStyle = colour(shade ? "band-b" : "band-a");
		context.fillRect(left, tall ? 14 : 1, right - left, (tall ? foot - 16 : foot - 2));
		if (tall && right - left > context.measureText(run.phase).width + 6) {
			context.fillStyle = colour("soft");
			context.fillText(run.phase, left + 3, 10);
		}
	}
}

// Notable polls as they were; of the others a stretch knows how many there were, and they were on time: so they are
// drawn evenly over it, without those that are drawn already.
function marks({ runs, polls, from, to }) {
	const found = [];
	const noted = polls.map((poll) => ({ ...poll, at: time(poll.sent), was: time(poll.due) })).sort((a, b) => a.at - b.at);
	for (const run of runs) {
		const inside = noted.filter((poll) => poll.at >= run.from - 1 && poll.at <= run.to + 1);
		const quiet = run.polls - inside.length;
		if (quiet <= 0 || run.to < from || run.from > to) continue;
		const step = run.polls > 1 ? (run.to - run.from) / (run.polls - 1) : 0;
		// Only what can be seen is gone through: a stretch may have tens of thousands of polls.
		const first = step ? Math.max(0, Math.ceil((from - run.from) / step)) : 0;
		for (let n = first, drawn = 0, next = 0; n < run.polls && drawn < Math.min(quiet, MARKS_MAX); n += 1) {
			const at = run.from + n * step;
			if (at > to) break;
			while (inside[next]?.at <= at - step / 2) next += 1;
			if (inside[next]?.at < at + step / 2) continue;
			drawn += 1;
			found.push({ at, shape: "bar" });
		}
	}
	for (const poll of noted) {
		const lines = [`poll ${poll.poll_no}, ${poll.outcome}`, `${second(poll.at)}, ${span(poll.lateness_ms)} after it was due`];
		if (poll.late) lines.push(`late: ${word(poll.late)}`);
		if (poll.error_class) lines.push(word(poll.error_class));
		if (poll.changes) lines.push(plural(poll.changes, "change") + (poll.events ? `, ${plural(poll.events, "event")}` : ""));
		if (poll.missed) {
			lines.push(`${poll.missed} missed before: ${word(poll.missed_cause) || "unknown"}`);
			found.push({ at: poll.was - 1, shape: "cross", lines });
		}
		const shape = poll.outcome === "failed" ? "diamond" : poll.late ? "triangle" : "bar";
		found.push({ at: poll.at, shape, changed: poll.changes > 0, lines });
	}
	return found;
}

function paint(context, x, y, r, { shape, changed }) {
	const tint = { bar: "good", triangle: "warn", diamond: "bad", cross: "bad" }[shape];
	context.fillStyle = context.strokeStyle = colour(tint);
	context.lineWidth = 1.5;
	context.beginPath();
	if (shape === "bar") context.fillRect(Math.round(x) - 0.75, y - r, 1.5, 2 * r);
	else CORNERS[shape].forEach(([right, down], n) => context[n ? "lineTo" : "moveTo"](x + right * r, y + down * r));
	if (shape === "cross") context.stroke();
	else context.fill();
	if (changed) {
		context.fillStyle = colour("accent");
		context.beginPath();
		context.arc(x, y - r - 2, r > 5 ? 2.5 : 1.5, 0, 7);
		context.fill();
	}
}

export function legend() {
	const sample = (shape, words, changed) => {
		const node = canvas("mark", (context, width, height) => paint(context, width / 2, height / 2 + 1, 5, { shape, changed }));
		node.setAttribute("aria-hidden", "true");
		return h("span", node, words);
	};
	return h("p.legend", sample("bar", "on time"), sample("triangle", "late"), sample("cross", "missed"), sample("diamond", "failed"),
		sample("bar", "something changed", true));
}

export const stretch = (run) => ({ ...run, from: time(run.from), to: time(run.to) });
