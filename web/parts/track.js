// A target's line: its phases as a band, its polls as marks, the next one as a thin countdown.

import { attr, h } from "../dom.js";
import { cause, num, plural, second, span, time } from "../format.js";
import { canvas, colour, done, fill, timeAxis, tipped, write } from "./canvas.js";

export const GLANCE_MS = 1_200_000;
const APART_PX = 3; // Bars that are closer than this cannot be told apart.
const NEAR_PX = 8;
const CORNERS = { triangle: [[0, -1], [1, 1], [-1, 1]], diamond: [[0, -1], [1, 0], [0, 1], [-1, 0]], cross: [[-1, -1], [1, 1], [0, 0], [1, -1], [-1, 1]] };

// A drawing of `{ from, to, now, runs, polls, known, due }` in milliseconds: `polls` has every notable one since `known`.
// `tall` has an axis, names, and values on hover.
export function track(page, tall = false) {
	let data = null;
	let hits = [];
	const node = canvas(tall ? "track tall" : "track", (context, width, height) => data && (hits = draw(context, width, height, data, tall)));
	const update = (next) => {
		// Most updates only move the window.
		const noted = next.polls === data?.polls ? data.noted : next.polls.map((poll) => ({ ...poll, at: time(poll.sent), was: time(poll.due) })).sort((a, b) => a.at - b.at);
		data = { known: -Infinity, ...next, noted };
		data.parts = data.runs.filter((run) => run.to >= data.from && run.from <= data.to).map((run) => part(run, data));
		const words = describe(data);
		attr(node, "aria-label", words);
		if (!tall) attr(node, "title", words);
		node.drawing();
	};
	// The last twenty minutes and the next six, for a line among others; `past` are stretches before the one that goes on.
	const glance = (now, { due, run }, polls, past = [], known = -Infinity) =>
		(node.isSeen || !data) && update({ from: now - GLANCE_MS, to: now + 360_000, now, due: time(due), runs: [...past, ...(run ? [run] : [])].map(stretch), polls, known });
	if (!tall) return { node, glance };
	const near = (x) => {
		// A mark that is close by, or else the stretch around.
		const far = (hit) => (!hit.right ? Math.abs(hit.x - x) : hit.x <= x && x <= hit.right ? NEAR_PX : Infinity);
		const [best] = hits.toSorted((a, b) => far(a) - far(b));
		return best && far(best) <= NEAR_PX ? { ...best, x } : null;
	};
	return { update, node: tipped(page, node, { near, stops: () => hits.map(({ at }) => at), look: (at) => hits.find((hit) => hit.at === at) }) };
}

// What is known of a stretch: which of its polls are listed, and up to when (`blind`) they are only counted. Where it
// counts more late or missed ones than are listed, the list is not all there is, whatever anybody believes.
function part(run, { noted, known }) {
	const inside = noted.filter(({ at }) => at >= run.from - 1 && at <= run.to + 1);
	const late = run.late - inside.filter((poll) => poll.late).length;
	const missed = run.missed - inside.reduce((sum, poll) => sum + (poll.missed ?? 0), 0);
	const blind = run.from < known ? Math.min(run.to, known) : late > 0 || missed > 0 ? run.to : null;
	const share = blind == null ? 0 : run.to > run.from ? (blind - run.from) / (run.to - run.from) : 1;
	const before = inside.filter(({ at }) => at <= blind).length;
	return { run, inside, blind, counted: Math.max(0, Math.round(run.polls * share) - before), late: Math.max(0, late), missed: Math.max(0, missed) };
}

const unlisted = ({ counted, late, missed }) => `about ${plural(counted, "poll")} counted, not listed: ${num(late)} late, ${num(missed)} missed`;

function describe({ runs, parts, polls, due, now, from }) {
	const [total, late, missed] = ["polls", "late", "missed"].map((name) => runs.reduce((sum, run) => sum + run[name], 0));
	const failed = polls.filter((poll) => poll.outcome === "failed").length;
	const next = due == null ? "no next poll" : `next poll in ${span(Math.max(0, due - now))}`;
	const blind = parts.filter((one) => one.blind > from && one.counted).map((one) => `; of phase ${one.run.phase} ${unlisted(one)}`);
	return `${plural(total, "poll")}, ${late} late, ${missed} missed, ${failed} failed${blind.join("")}; ${next}`;
}

function draw(context, width, height, data, tall) {
	const { from, to, now } = data;
	const x = (at) => ((at - from) / (to - from)) * width;
	const foot = tall ? height - 18 : height;
	const middle = tall ? foot * 0.55 : foot / 2;
	const hits = [];
	fill(context, "line", 0, middle - 0.5, width, 1);
	bands(context, data, x, foot, width, tall);
	if (tall) timeAxis(context, width, height - 3, from, to, x);
	const size = tall ? 7 : 4;
	for (const one of data.parts) hits.push(...polled(context, one, data, x, middle, size, tall));
	for (const mark of marks(data)) {
		const at = x(mark.at);
		if (at < -4 || at > width + 4) continue;
		paint(context, at, middle, size, mark);
		hits.push({ ...mark, x: at });
	}
	if (now >= from && now <= to) fill(context, "soft", Math.round(x(now)), 0, 1, foot);
	if (data.due != null && data.due <= to && data.due >= from) {
		const at = Math.round(x(data.due));
		fill(context, "accent", at, 1, 2, foot - 2);
		context.fillRect(Math.min(x(now), at), middle - 1, Math.abs(at - x(now)), 2);
		hits.push({ at: data.due, x: at, lines: ["next poll", second(data.due)] });
	}
	return hits;
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
		fill(context, shade ? "band-b" : "band-a", left, tall ? 14 : 1, right - left, (tall ? foot - 16 : foot - 2));
		if (tall && right - left > context.measureText(run.phase).width + 6) {
			write(context, run.phase, left + 3, 10);
		}
	}
}

// The polls of a stretch that are not listed. They were on time and found nothing, so they are drawn evenly over it,
// beside those that are listed; unless all that is known is their number: then they are a box, which says so.
function polled(context, one, { from, to }, x, y, r, tall) {
	const { run, inside, blind } = one;
	const hits = [];
	if (blind > from && one.counted) {
		const [left, right] = [Math.max(0, x(run.from)), x(Math.min(blind, to))];
		box(context, left, Math.max(3, right - left), y, r, one.late || one.missed);
		hits.push({ at: run.from - 1, x: left, right, lines: [`${run.phase}: ${unlisted(one)}`] });
		const words = tall ? `${num(one.late)} late, ${num(one.missed)} missed, not listed` : "";
		if (words && right - left > context.measureText(words).width + 8) write(context, words, left + 4, y + 4);
	}
	const step = run.polls > 1 ? (run.to - run.from) / (run.polls - 1) : 0;
	const [begin, end] = [Math.max(run.from, from, blind ?? -Infinity), Math.min(run.to, to)];
	if (end < begin || run.polls - inside.length <= 0 || blind === run.to) return hits;
	context.fillStyle = colour("good");
	if (step && x(from + step) - x(from) < APART_PX) {
		context.fillRect(x(begin), y - r / 2, Math.max(1.5, x(end) - x(begin)), r);
		// It comes before its own first mark.
		hits.push({ at: Math.max(run.from, blind ?? 0) - 1, x: x(begin), right: x(end), lines: [`${run.phase}: a poll every ${span(step)}, on time where nothing else is marked`] });
		return hits;
	}
	for (let n = step ? Math.ceil((begin - run.from) / step - 1e-9) : 0, next = 0; n < run.polls; n += 1) {
		const at = run.from + n * step;
		if (at > end) break;
		while (inside[next]?.at <= at - step / 2) next += 1;
		if (!(inside[next]?.at < at + step / 2)) paint(context, x(at), y, r, { shape: "bar" });
		if (!step) break;
	}
	return hits;
}

function box(context, left, width, y, r, wrong) {
	context.strokeStyle = colour(wrong ? "warn" : "soft");
	context.lineWidth = 1;
	context.setLineDash([3, 2]);
	context.strokeRect(left + 0.5, y - r + 0.5, width - 1, 2 * r - 1);
	context.setLineDash([]);
}

// Notable polls as they were.
function marks({ noted }) {
	const found = [];
	for (const poll of noted) {
		const lines = [`poll ${poll.poll_no}, ${poll.outcome}`, `${second(poll.at)}, ${span(poll.lateness_ms)} after it was due`];
		if (poll.late) lines.push(`late: ${cause(poll.late)}`);
		if (poll.error_class) lines.push(cause(poll.error_class));
		if (poll.changes) lines.push(plural(poll.changes, "change") + (poll.events ? `, ${plural(poll.events, "event")}` : ""));
		if (poll.missed) {
			lines.push(`${poll.missed} missed before: ${cause(poll.missed_cause) || "unknown"}`);
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

export function legend(page) {
	const sample = (shape, words, changed) => {
		const node = canvas("mark", (context, width, height) => (shape === "box" ? box(context, 2, width - 4, height / 2 + 1, 5) : paint(context, width / 2, height / 2 + 1, 5, { shape, changed })));
		node.setAttribute("aria-hidden", "true");
		page.end(() => done(node));
		return h("span", node, words);
	};
	return h("p.legend", sample("bar", "on time"), sample("triangle", "late"), sample("cross", "missed"), sample("diamond", "failed"),
		sample("box", "counted, not listed"), sample("bar", "something changed", true));
}

export const stretch = (run) => ({ ...run, from: time(run.from), to: time(run.to) });
