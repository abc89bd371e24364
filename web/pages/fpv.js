import { all, attr, clock, cls, family, fig, flightsOf, get, h, keyed, lap, num, panel, path, plural, put, table, text, tick, told, unconfigured, watch } from "../kit.js";

export const title = "FPV";

const STATES = { racing: "▶ Racing", staging: "◆ Staging", waiting: "○ Waiting", finished: "● Finished" };

export function mount(root, page) {
	const wall = page.get("wall") === "1";
	document.body.classList.toggle("wall", wall);
	page.keys.w = () => page.set("wall", wall ? null : "1");
	let source = null;
	let board = null;
	let learnt = 0;
	const current = raceCard(page, "Current", true);
	const last = raceCard(page, "Last");
	const next = raceCard(page, "Next");
	const you = youPanel(page, () => board && render());
	const upcoming = upcomingPanel();
	const leaders = leaderTable();
	const event = h("b");
	const toggle = h("button.quiet", { click: page.keys.w, "aria-keyshortcuts": "w", "aria-pressed": String(wall) }, wall ? "Leave wall mode" : "Wall mode");
	const stale = h("span.soft");
	const news = wall ? null : told(page, "Told", { query: { type: "fpv." }, most: 20, wants: (one) => one.type.startsWith("fpv.") });
	page.put(h("div.bar.event", event, stale, h("span.grow"), toggle), h("div.fpv", h("div.side", current.node, panel("Leaderboard", leaders.node), news), h("div.side", you.node, next.node, last.node, upcoming.node)));

	function render() {
		text(event, board.event?.name ?? "No event is open");
		page.title(board.event?.name ? `FPV: ${board.event.name}` : "FPV");
		text(stale, board.races ? plural(board.races, "race") : "");
		current.update(board.current);
		last.update(board.last);
		next.update(board.next);
		you.update(board);
		upcoming.update(board, page.get("pilot"));
		leaders.update(board.leaderboard ?? [], page.get("pilot"));
	}

	watch(page, {
		load: async (signal) => {
			const sources = await family("fpv", signal);
			source = page.get("source") ?? sources[0]?.name;
			return source ? load(source, signal) : null;
		},
		show: (answer) => {
			if (!answer) return put(root, unconfigured("FPV", '[source.track] kind = "fpv", url = "http://trackside.local:8080"'));
			board = answer;
			learnt = clock.now();
			render();
		},
		event: (one) => one.type.startsWith("fpv."),
		poll: (one) => one.source === source && one.changes > 0 && one.target.startsWith("race/"),
		kv: (row) => row.namespace === "race",
	});
	page.end(tick((now) => board && current.beat(board.current?.elapsed_seconds == null ? null : board.current.elapsed_seconds + (now - learnt) / 1000)));
}

let shown = null; // The race that was current: another one has everything asked for again.

// Everything the page shows: what overlays show, the whole leaderboard, the laps that are flown, the races to come.
async function load(source, signal) {
	const board = await get(path("/v1/fpv", source, "overlay"), signal).catch((error) => {
		if (error.status !== 404) throw error;
	});
	if (!board) return {};
	const current = board.current?.race_id;
	const [leaderboard, { races, pilots, channels }] = await Promise.all([get(path("/v1/fpv", source, "leaderboard"), signal), flightsOf(source, signal, shown !== current)]);
	shown = current;
	const record = races.find((race) => race.key === current || race.body.race_id === current);
	const laps = record ? await all(path("/v1/records", source, { kind: "fpv_laps", parent: record.fingerprint, limit: 1000 }), signal) : [];
	const flown = laps.map(({ body }) => body).filter((lap_) => lap_.valid && lap_.lap_number > 0).sort((a, b) => a.lap_number - b.lap_number);
	for (const pilot of board.current?.pilots ?? []) pilot.lap_seconds = flown.filter((one) => one.pilot === pilot.pilot).map((one) => one.length_seconds);
	if (board.current) board.current.target_laps = record?.body.target_laps;
	const seat = ({ pilot, channel }) => ({ pilot, name: pilots.get(pilot)?.name, colour: channels.get(channel)?.colour });
	const later = races.map(({ body }) => body).filter((race) => race.race_order > (board.current?.order ?? 0) && !race.end && race.valid !== false);
	later.sort((a, b) => a.race_order - b.race_order);
	const upcoming = later.slice(0, 8).map((race) => ({ race_id: race.race_id, order: race.race_order, number: race.race_number, pilots: (race.pilots ?? []).filter((one) => one?.pilot).map(seat) }));
	return { ...board, leaderboard, upcoming };
}

// A pilot, with the colour that the event gave their channel; only what is a colour is taken.
function pilotOf() {
	const [dot, name, more] = [h("i.swatch", { "aria-hidden": "true" }), h("b"), h("small.soft")];
	const node = h("span.pilot", dot, name, more);
	node.update = (pilot) => {
		dot.style.background = /^#[0-9a-f]{6}$/i.test(pilot.colour ?? "") ? pilot.colour : "transparent";
		text(name, pilot.name ?? "?");
		text(more, pilot.channel ? ` ${pilot.channel}` : "");
	};
	return node;
}

const nameOf = (race) => (race ? `Race ${race.order ?? "–"}${race.round == null ? "" : `, round ${race.round}-${race.number ?? "?"}`}` : "");
const NONE = { Current: "No race is up. It appears here as soon as the event has one.", Last: "No race has been flown yet.", Next: "No race comes after the current one." };

const moved = ({ position_change: by }) => (by > 0 ? " ▲" : by < 0 ? " ▼" : "");

function raceCard(page, words, large = false) {
	let race = null;
	let best = null;
	const [name, state, elapsed] = [h("span"), h("span.chip"), h("span.num.elapsed")];
	const laps = { head: "Laps", unit: "s", cls: "laps", make: () => h("ol"), set: (list, pilot) => keyed(list, (pilot.lap_seconds ?? []).map((seconds, n) => ({ n, seconds })), (one) => one.n, () => h("li.num"), (item, one) => {
		text(item, lap(one.seconds));
		cls(item, `num${one.seconds === pilot.best_lap_seconds ? " best" : ""}`);
	}) };
	const flown = [
		fig("Pos", (pilot) => (race.state === "waiting" || race.state === "staging" ? "" : `${pilot.position}${moved(pilot)}`), { tell: "quiet" }),
		fig("Laps", (pilot) => (race.target_laps ? `${pilot.laps}/${race.target_laps}` : pilot.laps), { tell: true }),
		fig("Last", (pilot) => lap(pilot.last_lap_seconds), { unit: "s", tell: true }),
		fig("Best", (pilot) => `${lap(pilot.best_lap_seconds)}${pilot.best_lap_seconds != null && pilot.best_lap_seconds === best ? " ★" : ""}`, { unit: "s", tell: true }),
	];
	const grid = table({
		caption: `${words} race`, key: (pilot) => pilot.pilot, none: NONE[words], sticky: false, state: (pilot) => (page.get("pilot") === pilot.pilot ? "you" : ""),
		columns: [
			{ head: "Pilot", make: pilotOf, set: (node, pilot) => node.update(pilot) },
			...(words === "Next" ? [] : flown), ...(large ? [laps] : []),
		],
	});
	const node = panel(`${words} race`, [name, state, h("span.grow"), elapsed], grid.node);
	node.className = `panel race-card${large ? " large" : ""}`;
	const update = (found) => {
		race = found;
		state.hidden = !race;
		text(name, nameOf(race), "quiet");
		text(state, STATES[race?.state] ?? race?.state, "quiet");
		attr(state, "data-race", race?.state);
		best = Math.min(...(race?.pilots ?? []).map((pilot) => pilot.best_lap_seconds ?? Infinity));
		grid.update(race?.pilots ?? []);
	};
	return { node, update, beat: (seconds) => text(elapsed, seconds == null ? "" : `${Math.floor(seconds / 60)}:${(seconds % 60).toFixed(1).padStart(4, "0")}`) };
}

function leaderTable() {
	let you = null;
	const grid = table({
		caption: "Leaderboard of the event", key: (row) => row.pilot, state: (row) => (row.pilot === you ? "you" : ""),
		columns: [
			{ head: "Pilot", cls: "name", value: (row) => row.name ?? row.pilot }, fig("Pos", (row) => `${row.position}${moved(row)}${Math.abs(row.position_change) || ""}`, { tell: "quiet" }),
			fig("Laps", (row) => num(row.laps), { tell: "quiet" }), fig("Best in a row", (row) => lap(row.best_consecutive_seconds), { unit: "s", tell: true }),
			fig("Best lap", (row) => lap(row.best_lap_seconds), { unit: "s", tell: true }), fig("Holeshot", (row) => lap(row.holeshot_seconds), { unit: "s" }),
		],
	});
	return { node: grid.node, update: (rows, pilot) => {
		you = pilot;
		grid.update(rows);
	} };
}

// "You race in N": the pilot is chosen once and kept in the address.
function youPanel(page, changed) {
	const pick = h("select", { "aria-label": "Who are you?", change: (event) => {
		page.set("pilot", event.target.value || null, true);
		changed();
	} });
	const words = h("p.you-in", { role: "status" });
	const more = h("p.soft");
	const node = panel("You", [pick], words, more);
	node.classList.add("you-panel");
	const update = (board) => {
		const names = new Map([...(board.leaderboard ?? []), ...(board.pilots ?? [])].map((one) => [one.pilot, one.name ?? one.pilot]));
		const list = [...names].sort((a, b) => a[1].localeCompare(b[1]));
		const chosen = page.get("pilot") ?? "";
		keyed(pick, [["", "Choose a pilot"], ...list], ([id]) => id, ([id, name]) => h("option", { value: id }, name));
		if (document.activeElement !== pick) pick.value = chosen;
		const mine = (board.pilots ?? []).find((one) => one.pilot === chosen);
		text(words, !chosen ? "" : !mine ? "You have no race left." : mine.readiness === "racing" ? "You are racing" : mine.races_away === 0 ? "You are up now" : `You race in ${mine.races_away}`, "quiet");
		text(more, !chosen ? "Choose a pilot to see when they fly next." : mine ? `Race ${mine.order ?? "–"} on ${mine.channel ?? "no channel yet"}` : "");
	};
	return { node, update };
}

function upcomingPanel() {
	const list = h("ol.upcoming");
	const none = h("p.soft", NONE.Next);
	const node = panel("Coming up", none, list);
	const update = ({ upcoming = [] }, you) => {
		none.hidden = upcoming.length > 0;
		keyed(list, upcoming, (race) => race.race_id, () => h("li", h("b"), h("span.who")), (row, race) => {
			text(row.firstChild, nameOf(race));
			keyed(row.lastChild, race.pilots, (pilot) => pilot.pilot, pilotOf, (one, pilot) => {
				one.update(pilot);
				cls(one, `pilot${pilot.pilot === you ? " you" : ""}`);
			});
		});
	};
	return { node, update };
}
