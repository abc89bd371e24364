import { attr, bucket, choice, clock, cls, col, dollars, fig, get, h, hour, isOver, isRunning, keyed, nothing, num, panel, path, plural, price, raceHref, racesOf, ring, scroll, second, spark, stepChart, table, targetHref, text, time, timeOf, told, watch } from "../kit.js";
import { status } from "./racing.js";

export const title = "Race";

const VIEWS = [["win", "Win money"], ["place", "Place money"], ["odds", "Odds"]];
// A band's colour goes with its number: six of them are too many to be told apart by colour alone.
const RAISED = ["", "¹", "²", "³", "⁴", "⁵", "⁶"];
const BANDS = { "5-10": 1, "10-15": 2, "15-20": 3, "20-25": 4, "25-50": 5, "50+": 6 };

export function mount(root, page) {
	const [source, id] = page.needs("race", "/racing", "id");
	if (!id) return;
	let data = null;
	const head = header(page, source, id);
	const view = choice(page, "view", () => VIEWS, "win", "What the columns show", () => lines.again());
	page.keys.v = () => {
		const names = VIEWS.map(([name]) => name);
		const next = names[(names.indexOf(view.value) + 1) % names.length];
		page.set("view", next === "win" ? null : next, true);
		view.render();
		lines.again();
	};
	const list = runners(page, (number) => {
		page.set("runner", page.get("runner") === String(number) ? null : number, true);
		list.update(data, view.value);
		chart.load(data);
	});
	const chart = chartPanel(page, source);
	const side = sidePanels(page, source, id);
	page.put(head.node, panel("Runners", [h("span.soft.hint", "Choose a runner for its chart"), h("span.grow"), view.node], bandLegend(), list.node), chart.node, side.node);

	const mine = (what) => what.source === source && (what.target === `race/${id}` || what.data?.record?.race === id);
	const lines = watch(page, {
		// Between two polls nothing changes but the columns of time.
		every: 10_000,
		load: async (signal) => {
			const base = ["/v1/racing", source, "races", id];
			const [race, results, timeline] = await Promise.all([
				get(path(...base), signal), get(path(...base, "results"), signal),
				get(path(...base, "timeline", { pool: view.value === "place" ? "place" : "win" }), signal).catch(() => null),
			]);
			return { ...race, results: results.results, dividends: results.dividends, timeline, at: time(race.race.body.start_time) };
		},
		show: (found) => {
			data = found;
			head.update(data);
			list.update(data, view.value);
			side.update(data);
			chart.load(data);
		},
		event: mine,
		poll: mine,
	});
	neighbours(page, source, id, head);
}

function header(page, source, id) {
	const name = h("b");
	const where = h("span.soft");
	const state = h("span.chip");
	const start = timeOf(null, "start");
	start.className = "num huge";
	const poll = ring();
	const phase = h("a", { href: targetHref(source, `race/${id}`) });
	const prev = h("a.button", { rel: "prev", hidden: true, "aria-keyshortcuts": "ArrowLeft" });
	const next = h("a.button", { rel: "next", hidden: true, "aria-keyshortcuts": "ArrowRight" });
	const protest = h("span.chip", { hidden: true, "data-state": "reconnecting" });
	const node = h("section.panel.race-head", { "aria-label": "Race" }, h("div.when", start, state, protest), h("div.what", name, where), h("div.poll", h("span.soft", "next poll "), poll, h("span.soft", " "), phase), h("div.turn", prev, next));
	const update = ({ race, meeting, target, at }) => {
		const { body } = race;
		const over = isRunning(body);
		start.set(at, "start", over);
		text(state, status(body), "quiet");
		attr(state, "data-status", (body.status ?? "open").toLowerCase());
		text(name, body.name ?? id);
		text(where, [meeting?.body.name, `R${body.race_number ?? "?"}`, hour(at), body.distance ? `${num(body.distance)} m` : null, body.track_condition, body.weather,
			body.actual_start && over ? `jumped ${second(time(body.actual_start))}` : null].filter(Boolean).join(" · "));
		protest.hidden = !body.protest;
		text(protest, `▲ Protest${body.protest_reason ? `: ${body.protest_reason}` : ""}`);
		poll.set(time(target?.due), target?.interval_ms ?? 0);
		text(phase, target ? `${target.phase}, why?` : "not polled");
		page.title(`${meeting?.body.name ?? "Race"} R${body.race_number ?? "?"}`);
	};
	return { node, update, prev, next };
}

// The races before and after in start order, for the arrow keys.
async function neighbours(page, source, id, { prev, next }) {
	const { list } = await racesOf(source, page.signal).catch(() => ({ list: [] }));
	const at = list.findIndex((race) => race.id === id);
	for (const [link, step, key] of [[prev, -1, "ArrowLeft"], [next, 1, "ArrowRight"]]) {
		const race = at < 0 ? null : list[at + step];
		link.hidden = !race;
		if (!race) continue;
		attr(link, "href", raceHref(source, race.id));
		text(link, step < 0 ? `← ${race.label}` : `${race.label} →`);
		page.keys[key] = () => link.click();
	}
}

const byPrice = (entrants) => entrants.filter(({ body }) => body.win_odds && !body.is_scratched).sort((a, b) => a.body.win_odds - b.body.win_odds);

function runners(page, choose) {
	const body = h("tbody");
	const headRow = h("tr");
	const fixed = [["#", "num"], ["Runner", "name"], ["Win", "num"], ["Place", "num"], ["Odds", "spark"], ["Hold %", "num"]];
	fixed.forEach(([words, name]) => headRow.append(h("th", { scope: "col", class: name }, words)));
	const caption = h("caption.unseen", "Runners with prices, and money or prices by minutes to the start");
	const node = scroll(".sticky.grid", "Runners", h("table", caption, h("thead", headRow), body));
	let moved = false;

	const make = (runner) => {
		const line = spark();
		const button = h("button.row.runner", { click: () => choose(runner.body.runner_number) }, h("b"), h("small"));
		const row = h("tr", h("td.num"), h("th.name", { scope: "row" }, button), h("td.num"), h("td.num"), h("td.spark", line.node), h("td.num"));
		Object.assign(row, { button, line, times: [] });
		return row;
	};

	function update({ entrants, timeline: grid }, view) {
		const { lines, buckets: columns } = grid ?? { lines: [], buckets: [] };
		const shown = view === "odds" ? "odds" : "amount_cents";
		const empty = (n) => lines.every(({ cells }) => cells[n]?.[shown] == null);
		const first = Math.max(0, columns.findIndex((_, n) => !empty(n) || n === columns.length - 1));
		const buckets = columns.slice(first);
		const cellsOf = new Map(lines.map((line) => [line.entrant, line.cells]));
		while (headRow.children.length > fixed.length + buckets.length) headRow.lastChild.remove();
		buckets.forEach((minutes, n) => {
			const cell = headRow.children[fixed.length + n] ?? headRow.appendChild(h("th", { scope: "col", class: "num time" }, h("span"), h("small")));
			text(cell.firstChild, bucket(minutes));
			text(cell.lastChild, view === "odds" ? "" : " $");
			attr(cell, "data-start", minutes === 0 ? "" : null);
		});
		const [favourite] = byPrice(entrants);
		keyed(body, entrants, (one) => one.key, make, (row, one) => {
			const { body: runner } = one;
			const cells = cellsOf.get(one.key) ?? [];
			const [number, , win, place, , hold] = row.children;
			text(number, runner.runner_number);
			text(row.button.firstChild, runner.name);
			text(row.button.lastChild, runner.is_scratched ? `✕ ${runner.is_late_scratched ? "late scratching" : "scratched"}${runner.scratch_time ? ` ${hour(time(runner.scratch_time))}` : ""}`
				: [one === favourite ? "★ favourite" : null, runner.barrier ? `(${runner.barrier})` : null, runner.jockey, runner.trainer_name].filter(Boolean).join(" · "));
			priced(win, runner.win_odds);
			priced(place, runner.place_odds);
			text(hold, num(runner.hold_percentage), true);
			row.line.update(cells.map((cell) => cell.odds));
			const open = page.get("runner") === String(runner.runner_number);
			cls(row, `${runner.is_scratched ? "scratched" : ""}${open ? " open" : ""}`);
			attr(row.button, "aria-expanded", String(open));
			times(row, cells.slice(first), view, fixed.length);
		});
		// The newest columns are on the right: that is where one looks.
		if (!moved && buckets.length) {
			moved = true;
			if (node.clientWidth < 700) return;
			requestAnimationFrame(() => (node.scrollLeft = node.scrollWidth));
		}
	}
	return { node, update };
}

function priced(cell, odds) {
	const before = cell.odds;
	if (before === odds) return;
	cell.odds = odds;
	const way = before == null || odds == null ? "" : odds < before ? " ▼" : " ▲";
	text(cell, price(odds) + way, true);
	if (before != null) cell.title = `was ${price(before)}`;
}

function times(row, cells, view, offset) {
	while (row.children.length > offset + cells.length) row.lastChild.remove();
	cells.forEach((cell, n) => {
		const node = row.children[offset + n] ?? row.appendChild(h("td"));
		const mark = view === "odds" ? cell.shortened : cell.money;
		const added = cell.increment_cents;
		const value = view === "odds" ? cell.odds : (added ?? cell.amount_cents);
		const words = value == null ? "" : view === "odds" ? price(value) : `${added > 0 ? "+" : ""}${dollars(value)}`;
		const band = BANDS[mark?.band] ?? 1;
		text(node, mark ? `${view === "odds" ? "▼" : "▲"}${RAISED[band]} ${words}` : words);
		cls(node, `num time${mark ? ` band band-${band}` : ""}`);
		attr(node, "title", mark ? (view === "odds" ? `shortened by ${num(mark.percent, 1)} %` : `${num(mark.percent, 1)} points more of the money added`) + `, band ${mark.band}` : cell.share_percent == null ? null : `${num(cell.share_percent, 1)} % of the money added`);
	});
}

function bandLegend() {
	return h("p.legend.bands", h("span", "▲ share of new money, ▼ price shortened:"), ...Object.entries(BANDS).map(([words, n]) => h(`span.band.band-${n}`, `${RAISED[n]} ${words} %`)));
}

// The chart of the chosen runner, others faint behind it.
function chartPanel(page, source) {
	const win = stepChart(page, { unit: "Win and place price", format: (n) => num(n, n < 10 ? 2 : 1) });
	const name = h("b");
	const note = h("p.soft");
	const close = h("button.quiet", { click: () => { page.set("runner", null, true); node.hidden = true; } }, "Close");
	const node = panel("Prices", [name, h("span.legend", h("span.key.accent", "win"), h("span.key.second", "place"), h("span.key", "favourites' win")), h("span.grow"), close], win.node, note);
	node.hidden = true;
	let asked = 0;
	async function load(data) {
		const number = page.get("runner");
		const one = data?.entrants.find((entrant) => String(entrant.body.runner_number) === number);
		node.hidden = !one;
		if (!one) return;
		const turn = (asked += 1);
		const history = (record) => get(path("/v1/records", source, record.fingerprint, "history", { stream: "odds_history", limit: 1000 }), page.signal);
		const others = byPrice(data.entrants).filter((entrant) => entrant !== one).slice(0, 3);
		const rows = await Promise.all([one, ...others].map(history)).catch((error) => void text(note, error.message));
		if (!rows || turn !== asked) return;
		const points = (page_, field) => page_.items.filter((row) => row.values[field] != null).map((row) => ({ at: time(row.at), value: row.values[field], gap: row.gap })).sort((a, b) => a.at - b.at);
		const lines = [
			{ name: "win", colour: "accent", points: points(rows[0], "win_odds") }, { name: "place", colour: "second", dash: true, points: points(rows[0], "place_odds") },
			...others.map((entrant, n) => ({ name: entrant.body.name, soft: true, points: points(rows[n + 1], "win_odds") })),
		];
		const moments = lines.flatMap((line) => line.points.map((point) => point.at));
		const now = clock.now();
		const end = isRunning(data.race.body) ? Math.max(data.at ?? 0, ...moments) : now;
		const from = Math.max(Math.min(...moments, end - 60_000), (data.at ?? now) - 2 * 3_600_000);
		text(name, `${one.body.runner_number} ${one.body.name}`);
		text(note, `${plural(lines[0].points.length, "win price", "win prices")} since the first look; squares mark where moves between two looks are lost.`);
		win.update({ from, to: Math.max(end, from + 60_000), now: end, lines, marks: data.at == null ? [] : [{ at: data.at, words: "start" }] });
	}
	return { node, load };
}

function sidePanels(page, source, id) {
	const records = (caption, columns) => table({ caption, key: (row) => row.key, sticky: false, columns });
	const status = col("Status", (row) => row.body.status);
	const pools = records("Pools", [col("Pool", (row) => row.body.product_type), fig("Total", (row) => num(row.body.total, 0), { unit: "$", tell: true }), status]);
	const placed = records("Placings", [
		fig("Place", (row) => row.body.position), col("Runner", (row) => `${row.body.runner_number} ${row.body.name ?? ""}`), fig("Margin", (row) => num(row.body.margin, 1), { unit: "lengths" }) ]);
	const paid = records("Dividends", [col("Product", (row) => row.body.product), col("Runners", (row) => runnersOf(row.body.positions)), fig("Pays", (row) => num(row.body.dividend, 2), { unit: "$", tell: true }), status]);
	const none = h("p.soft");
	const results = panel("Results", none, placed.node, paid.node);
	const node = h("div.thirds", panel("Pools", pools.node), results, told(page, "Told", { source, target: `race/${id}` }));
	const update = (data) => {
		pools.update(data.pools);
		placed.node.hidden = !data.results.length;
		paid.node.hidden = !data.dividends.length;
		none.hidden = data.results.length > 0;
		text(none, isOver(data.race.body) ? "No placings were given." : "Placings and dividends appear here when the race is run.");
		placed.update(data.results);
		paid.update(data.dividends);
	};
	return { node, update };
}

function runnersOf(positions) {
	if (!Array.isArray(positions)) return "";
	return positions.map((one) => (typeof one === "object" ? one?.runner_number ?? one?.number ?? "" : one)).filter((one) => one !== "").join("-");
}
