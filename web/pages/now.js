import { GLANCE_MS, all, atMost, attr, causes, choice, clock, cls, family, filterBox, get, h, isOver, keyed, label, labels, legend, lineOf, live, meter, nothing, num, panel, path, put, racesOf, rate, ring, sourcesOf, span, table, targetHref, text, tick, time, timeOf, told, watch, when } from "../kit.js";

export const title = "Now";

const ROWS_MAX = 500;
const OVERDUE_MS = 3_000; // Then another node may have polled it, or nobody: the list knows.

export function mount(root, page) {
	const strips = h("div.strips");
	const board = targets(page);
	put(root, strips, h("div.split", board.node, told(page, "Just told")));
	sources(strips, page);
	board.start();
}

// One strip per source: requests against the limit and the budget, late, missed, failed.
function sources(root, page) {
	const counted = new Map(); // Requests by source, for the rate of the last minute.
	let known = [];
	function show(pulses) {
		const now = clock.now();
		const shown = known.map((source) => ({ ...source, vitals: pulses.find(({ name }) => name === source.name)?.vitals ?? source.vitals }));
		keyed(root, shown, (source) => source.name, strip, (node, source) => {
			const { requests } = source.vitals;
			const past = counted.get(source.name) ?? [];
			// A counter that fell is another process's.
			if (past.length && requests < past.at(-1)[1]) past.length = 0;
			past.push([now, requests]);
			while (past.length > 2 && now - past[0][0] > 60_000 * Math.max(1, clock.speed / 4)) past.shift();
			counted.set(source.name, past);
			const [[from, first], [to, last]] = [past[0], past.at(-1)];
			node.update(source, to > from ? (last - first) / ((to - from) / 1000) : null);
		});
	}
	watch(page, { place: root, load: (signal) => sourcesOf(signal, true), show: (found) => show((known = found)), targets: () => true, least: 5_000 });
	page.end(live.on("pulse", (pulse) => show(pulse.sources)));
}

function strip(source) {
	const bar = meter();
	const asked = h("b.num");
	const of = h("span.soft");
	const state = h("span.chip");
	const facts = ["polls", "late", "missed", "failed", "events"].map((name) => [name, h("b.num")]);
	const p99 = h("b.num");
	const why = h("p.why");
	const [about, url] = ABOUT[source.family] ?? [source.family, path("/events", { source: source.name })];
	const node = h("section.strip", { "aria-label": `Source ${source.name}` },
		h("header", h("h2", h("a", { href: url }, source.name)), h("span.soft", about), h("span.grow"), state), h("div.asked", asked, bar.node, of),
		h("dl.facts", ...facts.map(([name, value]) => h("div", { class: name }, h("dt", name), h("dd", value))),
			h("div", h("dt", { title: "99 of 100 polls were sent no later than this" }, "late p99"), h("dd", p99))), why);
	node.update = ({ vitals, limits, budget_per_second: budget }, perSecond) => {
		const most = rate(limits.requests_per_second);
		text(asked, perSecond == null ? "…" : rate(perSecond));
		text(of, `of ${most}${budget == null ? "" : `, budget ${rate(budget)}`}`);
		bar.update(perSecond ?? 0, limits.requests_per_second, budget, `${perSecond == null ? "measuring" : rate(perSecond)} of at most ${most} requests`);
		for (const [name, value] of facts) text(value, num(vitals[name]), ["late", "missed", "failed"].includes(name));
		cls(node.querySelector(".missed"), `missed${vitals.missed ? " bad" : ""}`);
		cls(node.querySelector(".failed"), `failed${vitals.failed ? " warn" : ""}`);
		text(p99, atMost(vitals.lateness_ms_p99));
		const wrong = [["missed", vitals.missed_causes], ["failed", vitals.failures], ["late", vitals.late_causes]].map(([name, counts]) => [name, causes(counts)]).filter(([, words]) => words);
		text(why, wrong.length ? wrong.map(([name, words]) => `${name}: ${words}`).join("; ") : vitals.polls ? "● every poll was on time, none was missed" : "○ not polled yet");
		attr(why, "title", why.textContent);
		cls(why, `why ${vitals.missed ? "bad" : vitals.failed ? "warn" : "soft"}`);
		const words = vitals.slow_until && time(vitals.slow_until) > clock.now() ? "△ told to wait"
			: vitals.slowdown > 1 ? `△ ${num(vitals.slowdown, 1)}× slower` : vitals.ready ? `${vitals.ready} waiting` : "● well";
		text(state, words);
		attr(state, "data-state", vitals.slowdown > 1 ? "reconnecting" : "");
	};
	return node;
}

function targets(page) {
	let rows = [];
	let byKey = new Map();
	let more = false; // Whether there are targets beyond the list.
	const past = new Map(); // Stretches that ended, by target.
	let known = -Infinity; // Since when every notable poll is listed.
	const polls = new Map(); // Notable ones by target, the newest first.
	const keyOf = ({ source, key }) => `${source}/${key}`;
	const scope = choice(page, "show", () => [["active", "Active"], ["failing", "Failing"], ["all", "All"]], "active", "Which targets", () => render());
	const box = filterBox(page, "Filter targets by name, phase or source", () => render());
	const count = h("span.soft.num");
	const lines = new Map();
	const none = h("div", { hidden: true });
	const grid = table({
		caption: "Targets: what has the focus, by start, by name",
		key: (row) => row.id,
		href: (row) => targetHref(row.source, row.key),
		says: (row) => [row.label, row.due, row.phase, row.at, row.running, row.last_outcome, row.last_error, row.last_changed, row.run?.polls, row.lateness_ms, row.enabled].join("|"),
		state: (row) => `${row.last_outcome === "failed" ? "failing" : ""}${row.enabled ? "" : " off"}`,
		columns: [
			{ head: "Target", cls: "name", value: (row) => row.label },
			{ head: "Start", cls: "num", make: () => timeOf(null, "start"), set: (node, row) => node.set(row.at, row.at == null ? "none" : "start", row.running) },
			{ head: "Phase", make: () => h("span"), set: (node, row) => { text(node, row.phase, "quiet"); attr(node, "title", row.reason); } },
			{ head: "Next poll", cls: "num", make: ring, set: (node, row) => node.set(row.dueAt, row.interval_ms) },
			{ head: "Late", cls: "num", title: "How long after it was due the last poll was sent", make: () => h("span"), set: (node, row) => {
				text(node, row.lateness_ms == null ? "–" : span(Math.max(0, row.lateness_ms)));
				attr(node, "title", row.run?.lateness_ms_p99 == null ? null : `99 of 100 of this stretch: ${atMost(row.run.lateness_ms_p99)}`);
			} },
			when("Last change", (row) => row.last_changed),
			{ head: "Last poll", make: () => h("span.outcome"), set: (node, row) => {
				text(node, row.last_error ? `✕ ${row.last_error}` : (OUTCOMES[row.last_outcome] ?? "not polled yet"));
				attr(node, "title", row.last_error);
			} },
			lineOf(page, lines, "Polls", keyOf, "of the last 20 min, and the next"),
		],
	});
	grid.node.classList.add("board");
	const node = panel("Targets", [count, h("span.grow"), scope.node, box.node], none, grid.node, legend(page));

	function render() {
		const which = scope.value;
		let shown = rows.filter((row) => which === "all" || (which === "failing" ? row.last_outcome === "failed" : row.enabled && row.due));
		shown = shown.filter((row) => box.finds(`${row.label} ${row.key} ${row.phase} ${row.source}`));
		text(count, `${num(Math.min(shown.length, ROWS_MAX))} of ${more ? `the ${num(rows.length)} that are due next; there are more` : num(rows.length)}`);
		none.hidden = shown.length > 0;
		grid.node.hidden = !shown.length;
		if (!shown.length) put(none, rows.length ? nothing("No target is like that.", "Choose All, or clear the filter.") : nothing("Nothing is watched yet.", "Sources find their targets within seconds of the start. ", h("a", { href: "/health" }, "Health"), " says what it waits for."));
		grid.update(shown.slice(0, ROWS_MAX));
	}

	// A stretch that gave way to another one stays on the line until it has moved out of it.
	function keep(key, before, now) {
		if (!before || before.from === now?.from) return;
		const since = clock.now() - GLANCE_MS;
		past.set(key, [...(past.get(key) ?? []).filter((run) => run.from !== before.from), before].filter((run) => run.from !== now?.from && time(run.to) > since));
	}

	// Notable polls of a target by their number: the list and the stream tell of the same ones.
	function note(key, found) {
		const since = clock.now() - GLANCE_MS;
		const all = new Map([...(polls.get(key) ?? []), ...found].map((poll) => [poll.poll_no, poll]));
		polls.set(key, [...all.values()].filter((poll) => time(poll.sent) > since));
	}

	// By start: a board does not jump about with every poll.
	const order = (row) => (row.phase === "focus" ? -Infinity : (row.at ?? Infinity));
	const sort = () => rows.sort((a, b) => order(a) - order(b) || a.label.localeCompare(b.label, undefined, { numeric: true }));
	const isUnderWay = (row) => row.phase === "after" || row.phase === "over" || row.over;

	// What a poll says of its target: no question is asked.
	function take(poll) {
		const row = byKey.get(`${poll.source}/${poll.target}`);
		if (!row) return;
		keep(keyOf(row), row.run, poll.run);
		const before = order(row);
		Object.assign(row, { lateness_ms: poll.lateness_ms, due: poll.next_due, dueAt: time(poll.next_due), phase: poll.phase, interval_ms: poll.interval_ms, reason: poll.reason,
			last_outcome: poll.outcome, last_error: poll.error, run: poll.run ?? row.run, at: time(poll.start) });
		row.running = isUnderWay(row);
		if (order(row) !== before) sort();
		if (poll.changes) row.last_changed = poll.ended;
		if (poll.late || poll.missed || poll.changes || poll.outcome === "failed") note(keyOf(row), [poll]);
		if (poll.earlier.length) note(keyOf(row), poll.earlier);
		if (!waiting) waiting = setTimeout(() => ((waiting = 0), render()), 200);
	}
	let waiting = 0;

	function draw(now) {
		for (const row of rows) {
			lines.get(keyOf(row))?.glance(now, row, polls.get(keyOf(row)) ?? NONE, past.get(keyOf(row)), known);
		}
	}

	function start() {
		const list = watch(page, {
			place: node,
			load: async (signal) => {
				const from = new Date(clock.now() - GLANCE_MS).toISOString();
				const [list, marks, sources] = await Promise.all([get(path("/v1/targets", { sort: "due", limit: 1000 }), signal), get(path("/v1/polls", { limit: 1000 }), signal), sourcesOf(signal), labels(signal)]);
				const races = new Map();
				for (const source of await family("racing", signal)) races.set(source.name, (await racesOf(source.name, signal)).byKey);
				const runs = await Promise.all(sources.map(async ({ name }) => [name, await all(path("/v1/runs", name, { from, limit: 1000 }), signal, 5_000)]));
				return [list, marks, races, runs];
			},
			show: ([{ items: list, next }, marks, races, runs]) => {
				more = Boolean(next);
				known = marks.next ? time(marks.items.at(-1).ended) : -Infinity;
				for (const [key, some] of Map.groupBy(marks.items, (poll) => `${poll.source}/${poll.target}`)) note(key, some);
				for (const row of list) keep(keyOf(row), byKey.get(keyOf(row))?.run, row.run);
				for (const [source, ended] of runs) for (const { key, run } of ended) keep(`${source}/${key}`, run);
				rows = list.map((row) => {
					const race = races.get(row.source)?.get(row.key);
					const made = { ...row, label: label(row.source, row.key), at: time(row.start), dueAt: time(row.due), over: race ? isOver(race) : false };
					return Object.assign(made, { running: isUnderWay(made) });
				});
				sort();
				byKey = new Map(rows.map((row) => [keyOf(row), row]));
				for (const kept of [past, polls]) for (const key of kept.keys()) if (!byKey.has(key)) kept.delete(key);
				render();
				draw(clock.now());
			},
			every: 300_000,
			least: 2_000,
			targets: () => true,
		});
		page.end(live.on("poll", take));
		page.end(tick((now) => {
			draw(now);
			if (rows.some((row) => row.enabled && row.dueAt && now - row.dueAt > OVERDUE_MS * clock.speed)) list.later();
		}, 1_000));
	}
	return { node, start };
}

const NONE = [];
// What a family of sources is about, and where more of it is.
const ABOUT = { racing: ["horse racing", "/racing"], fpv: ["drone racing", "/fpv"], tables: ["restaurant tables", "/tables"] };
const OUTCOMES = { changed: "● changed", unchanged: "– unchanged", baseline: "○ baseline", partial: "◐ partial", doubted: "? doubted", stale: "◌ stale", failed: "✕ failed" };
