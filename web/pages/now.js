// Now: what is polled, how soon, and whether it went well.

import { all, getText, metrics, path } from "../api.js";
import { attr, cls, h, keyed, put, text } from "../dom.js";
import { num, rate, span, time } from "../format.js";
import { clock, live, tick } from "../live.js";
import { meter } from "../parts/chart.js";
import { told } from "../parts/feed.js";
import { family, isOver, label, labels, racesOf, sourcesOf, targetHref } from "../parts/names.js";
import { ring } from "../parts/ring.js";
import { choice, filterBox, table } from "../parts/table.js";
import { timeOf } from "../parts/time.js";
import { legend, stretch, track } from "../parts/track.js";
import { nothing, watch } from "../watch.js";

export const title = "Now";

const ROWS_MAX = 500;
const BEHIND_MS = 20 * 60_000;
const AHEAD_MS = 6 * 60_000;

export function mount(root, page) {
	const strips = h("div.strips");
	const board = h("section.panel", { "aria-label": "Targets" });
	put(root, strips, h("div.split", board, told(page, "Just told")));
	sources(strips, page);
	targets(board, page);
}

/** One strip per source: requests against the limit and the budget, late, missed, failed. */
function sources(root, page) {
	const counted = new Map(); // Requests by source, for the rate of the last minute.
	watch(page, {
		every: 2_000,
		place: root,
		load: async (signal) => [await sourcesOf(signal, true), metrics(await getText("/metrics", signal))],
		show: ([found, numbers]) => {
			const now = clock.now();
			const requests = (name) => numbers.stakeout_requests_total?.find(({ labels: l }) => l.source === name)?.value ?? 0;
			keyed(root, found, (source) => source.name, strip, (node, source) => {
				const past = counted.get(source.name) ?? [];
				// A counter that fell is another process's.
				if (past.length && requests(source.name) < past.at(-1)[1]) past.length = 0;
				past.push([now, requests(source.name)]);
				while (past.length > 2 && now - past[0][0] > 60_000 * Math.max(1, clock.speed / 4)) past.shift();
				counted.set(source.name, past);
				const [first, last] = [past[0], past.at(-1)];
				node.update(source, last[0] > first[0] ? (last[1] - first[1]) / ((last[0] - first[0]) / 1000) : null);
			});
		},
	});
}

function strip(source) {
	const bar = meter();
	const asked = h("b.num");
	const state = h("span.chip");
	const facts = ["polls", "late", "missed", "failed", "events"].map((name) => [name, h("b.num"), name]);
	const p99 = h("b.num");
	const node = h("section.strip", { "aria-label": `Source ${source.name}` },
		h("header", h("h2", source.name), h("span.soft", source.family), h("span.grow"), state),
		h("div.asked", asked, bar.node, h("span.soft", `of ${rate(source.limits.requests_per_second)}`,
			source.budget_per_second == null ? "" : `, budget ${rate(source.budget_per_second)}`)),
		h("dl.facts", ...facts.map(([, value, name]) => h("div", { class: name }, h("dt", name), h("dd", value))),
			h("div", h("dt", { title: "99 of 100 polls were sent no later than this" }, "late p99"), h("dd", p99))));
	node.update = ({ vitals, limits, budget_per_second: budget }, perSecond) => {
		text(asked, perSecond == null ? "…" : rate(perSecond));
		bar.update(perSecond ?? 0, limits.requests_per_second, budget,
			`${perSecond == null ? "measuring" : rate(perSecond)} of at most ${rate(limits.requests_per_second)} requests`);
		for (const [name, value] of facts) text(value, num(vitals[name]), name === "late" || name === "missed" || name === "failed");
		cls(node.querySelector(".missed"), `missed${vitals.missed ? " bad" : ""}`);
		cls(node.querySelector(".failed"), `failed${vitals.failed ? " warn" : ""}`);
		text(p99, vitals.lateness_ms_p99 == null ? "–" : span(vitals.lateness_ms_p99));
		const words = vitals.slow_until && time(vitals.slow_until) > clock.now() ? "△ told to wait"
			: vitals.slowdown > 1 ? `△ ${num(vitals.slowdown, 1)}× slower` : vitals.ready ? `${vitals.ready} waiting` : vitals.in_flight ? `${vitals.in_flight} in flight` : "idle";
		text(state, words);
		attr(state, "data-state", vitals.slowdown > 1 ? "reconnecting" : "");
	};
	return node;
}

function targets(root, page) {
	let rows = [];
	let polls = [];
	const scope = choice(page, "show", () => [["active", "Active"], ["failing", "Failing"], ["all", "All"]], "active", "Which targets", () => render());
	const box = filterBox(page, "Filter targets by name, phase or source", () => render());
	const count = h("span.soft.num");
	const lines = new Map();
	const none = h("div", { hidden: true });
	const grid = table({
		caption: "Targets: what has the focus, by start, by name",
		key: (row) => row.id,
		href: (row) => targetHref(row.source, row.key),
		says: (row) => [row.label, row.due, row.phase, row.at, row.running, row.last_outcome, row.last_error, row.last_changed, row.run?.polls, row.enabled].join("|"),
		state: (row) => `${row.last_outcome === "failed" ? "failing" : ""}${row.enabled ? "" : " off"}`,
		columns: [
			{ head: "Target", cls: "name", value: (row) => row.label },
			{ head: "Start", cls: "num", make: () => timeOf(null, "start"), set: (node, row) => node.set(row.at, row.at == null ? "none" : "start", row.running) },
			{ head: "Phase", make: () => h("span"), set: (node, row) => { text(node, row.phase, "quiet"); attr(node, "title", row.reason); } },
			{ head: "Next poll", cls: "num", make: ring, set: (node, row) => node.set(row.dueAt, row.interval_ms) },
			{ head: "Late p99", cls: "num minor", title: "99 of 100 polls of the stretch that goes on were sent no later after they were due", value: (row) => (row.run?.lateness_ms_p99 == null ? "–" : `≤ ${span(row.run.lateness_ms_p99)}`) },
			{ head: "Last change", cls: "num", make: () => timeOf(null), set: (node, row) => node.set(time(row.last_changed), "age") },
			{ head: "Last poll", make: () => h("span.outcome"), set: (node, row) => {
				text(node, row.last_error ? `✕ ${row.last_error}` : outcome(row));
				attr(node, "title", row.last_error);
			} },
			{ head: "Polls", cls: "wide", make: (row) => {
				const line = track(page);
				lines.set(row.id, line);
				return line.node;
			}, set: () => {} },
		],
	});
	grid.node.classList.add("board");
	put(root, h("div.bar", h("h2", "Targets"), count, h("span.grow"), scope.node, box.node), none, grid.node, legend());

	function render() {
		const which = scope.value;
		let shown = rows.filter((row) => which === "all" || (which === "failing" ? row.last_outcome === "failed" : row.enabled && row.due));
		if (box.words) shown = shown.filter((row) => `${row.label} ${row.key} ${row.phase} ${row.source}`.toLowerCase().includes(box.words));
		text(count, `${num(Math.min(shown.length, ROWS_MAX))} of ${num(rows.length)}`);
		none.hidden = shown.length > 0;
		grid.node.hidden = !shown.length;
		if (!shown.length) put(none, rows.length ? nothing("No target is like that.", "Choose All, or clear the filter.") : nothing("Nothing is watched yet.", "Sources find their targets within seconds of the start. ", h("a", { href: "/health" }, "Health"), " says what it waits for."));
		grid.update(shown.slice(0, ROWS_MAX));
		draw(clock.now());
	}

	watch(page, {
		// With polls told as they happen this only heals; without, it is how they are seen.
		every: live.polls ? 15_000 : 1_500,
		place: root,
		load: async (signal) => {
			const [list, marks] = await Promise.all([all(path("/v1/targets", { limit: 1000 }), signal), all(path("/v1/polls", { limit: 400 }), signal, 400), labels(signal)]);
			const races = new Map();
			for (const source of await family("racing", signal)) races.set(source.name, (await racesOf(source.name, signal)).byKey);
			return [list, marks, races];
		},
		show: ([list, marks, races]) => {
			polls = marks;
			rows = list.map((row) => {
				const race = races.get(row.source)?.get(row.key);
				return { ...row, label: row.label ?? label(row.source, row.key), at: time(row.start), dueAt: time(row.due), race,
					running: row.phase === "after" || row.phase === "over" || (race ? isOver(race) : false) };
			});
			// By start: a board does not jump about with every poll.
			const order = (row) => (row.phase === "focus" ? -Infinity : (row.at ?? Infinity));
			const either = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
			rows.sort((a, b) => either(order(a), order(b)) || a.label.localeCompare(b.label, undefined, { numeric: true }));
			render();
		},
		least: 1_000,
		on: () => !live.polls,
	});

	page.end(live.on("poll", (poll) => {
		const row = rows.find((one) => one.source === poll.source && one.key === poll.target);
		if (!row) return;
		Object.assign(row, { due: poll.next_due, dueAt: time(poll.next_due), phase: poll.phase, interval_ms: poll.interval_ms, reason: poll.reason ?? row.reason,
			last_outcome: poll.outcome, last_polled: poll.sent, last_error: poll.outcome === "failed" ? row.last_error : null });
		if (poll.changes) row.last_changed = poll.sent;
		if (row.run && row.run.phase === poll.phase) Object.assign(row.run, { to: poll.sent, polls: row.run.polls + 1, late: row.run.late + (poll.late ? 1 : 0) });
		if (poll.late || poll.missed || poll.changes || poll.outcome === "failed") polls.unshift(poll);
		later();
	}));
	let waiting = false;
	function later() {
		if (waiting) return;
		waiting = true;
		setTimeout(() => ((waiting = false), render()), 200);
	}

	let drawn = 0;
	function draw(now) {
		drawn = performance.now();
		const byTarget = Map.groupBy(polls, (poll) => `${poll.source}/${poll.target}`);
		for (const row of rows) {
			const line = lines.get(row.id);
			if (!line?.isSeen) continue;
			line.update({ from: now - BEHIND_MS, to: now + AHEAD_MS, now, due: row.dueAt, runs: row.run ? [stretch(row.run)] : [], polls: byTarget.get(`${row.source}/${row.key}`) ?? [] });
		}
	}
	page.end(tick((now) => performance.now() - drawn > 1_000 && draw(now)));
}

const outcome = (row) => ({ changed: "● changed", unchanged: "– unchanged", baseline: "○ baseline", partial: "◐ partial", doubted: "? doubted", stale: "◌ stale", failed: "✕ failed" })[row.last_outcome] ?? "not polled yet";
