// FPV: the race that is flown, the ones before and after, who leads, and when you fly. A wall mode for the field.

import { all, get, path } from "../api.js";
import { attr, cls, h, keyed, panel, put, text } from "../dom.js";
import { lap, num, plural } from "../format.js";
import { clock, tick } from "../live.js";
import { told } from "../parts/feed.js";
import { family } from "../parts/names.js";
import { fig, table } from "../parts/table.js";
import { nothing, watch } from "../watch.js";

export const title = "FPV";

const STATES = { racing: "▶ Racing", staging: "◆ Staging", waiting: "○ Waiting", finished: "● Finished" };

export function mount(root, page) {
	const wall = page.query.get("wall") === "1";
	document.body.classList.toggle("wall", wall);
	page.keys.w = () => page.set("wall", wall ? null : "1");
	let board = null;
	let learnt = 0;
	const place = h("div");
	const current = raceCard("Current", true);
	const last = raceCard("Last");
	const next = raceCard("Next");
	const you = youPanel(page, () => board && render());
	const upcoming = upcomingPanel();
	const leaders = leaderTable();
	const event = h("b");
	const toggle = h("button.quiet", { type: "button", click: page.keys.w, "aria-keyshortcuts": "w", "aria-pressed": String(wall) }, wall ? "Leave wall mode" : "Wall mode");
	const stale = h("span.soft");
	const news = wall ? null : told(page, "Told", { query: { type: "fpv." }, most: 20, wants: (one) => one.type.startsWith("fpv.") });
	put(root, place, h("div.bar.event", event, stale, h("span.grow"), toggle), h("div.fpv", h("div.side", current.node, panel("Leaderboard", leaders.node), news), h("div.side", you.node, next.node, last.node, upcoming.node)));

	function render() {
		text(event, board.event?.name ?? "No event is open");
		page.title(board.event?.name ? `FPV: ${board.event.name}` : "FPV");
		text(stale, board.races ? plural(board.races, "race") : "");
		current.update(board.current, page);
		last.update(board.last, page);
		next.update(board.next, page);
		you.update(board);
		upcoming.update(board, page.query.get("pilot"));
		leaders.update(board.leaderboard ?? [], page.query.get("pilot"));
	}

	watch(page, {
		every: 2_000,
		place,
		load: async (signal) => {
			const sources = await family("fpv", signal);
			const name = page.query.get("source") ?? sources[0]?.name;
			return name ? load(name, signal) : null;
		},
		show: (answer) => {
			if (!answer) return put(root, unconfigured());
			board = answer;
			learnt = clock.now();
			render();
		},
		on: (one) => one.type.startsWith("fpv."),
		poll: (one) => one.changes > 0 && one.target.startsWith("race/"),
		kv: (row) => row.namespace === "race",
	});
	page.end(tick((now) => board && current.beat(board.current?.elapsed_seconds == null ? null : board.current.elapsed_seconds + (now - learnt) / 1000)));
}

const SLOW_MS = 5_000;
let known = { at: -SLOW_MS };

/** Races, pilots and channels change seldom; asked for again now and then, and when another race is current. */
async function day(source, current, signal) {
	if (known.source === source && known.current === current && performance.now() - known.at < SLOW_MS) return known;
	const records = (kind) => all(path("/v1/records", source, { kind: `fpv_${kind}`, limit: 1000 }), signal, 5_000);
	const [races, pilots, channels] = await Promise.all(["races", "pilots", "channels"].map(records));
	const by = (list) => new Map(list.map((record) => [record.key, record.body]));
	known = { source, current, at: performance.now(), races, pilots: by(pilots), channels: by(channels) };
	return known;
}

/** Everything the page shows: what overlays show, the whole leaderboard, the laps that are flown, the races to come. */
async function load(source, signal) {
	let board;
	try {
		board = await get(path("/v1/fpv", source, "overlay"), signal);
	} catch (error) {
		if (error.status === 404) return { event: null, pilots: [], leaderboard: [] };
		throw error;
	}
	const current = board.current?.race_id;
	const [leaderboard, { races, pilots, channels }] = await Promise.all([get(path("/v1/fpv", source, "leaderboard"), signal), day(source, current, signal)]);
	const record = races.find((race) => race.key === current || race.body.race_id === current);
	const laps = record ? await all(path("/v1/records", source, { kind: "fpv_laps", parent: record.fingerprint, limit: 1000 }), signal) : [];
	const flown = laps.map(({ body }) => body).filter((lap_) => lap_.valid && lap_.lap_number > 0).sort((a, b) => a.lap_number - b.lap_number);
	for (const pilot of board.current?.pilots ?? []) pilot.lap_seconds = flown.filter((one) => one.pilot === pilot.pilot).map((one) => one.length_seconds);
	if (board.current) board.current.target_laps = record?.body.target_laps;
	const seat = ({ pilot, channel }) => ({ pilot, name: named(pilots, pilot)?.name, colour: named(channels, channel)?.colour });
	const later = races.map(({ body }) => body).filter((race) => race.race_order > (board.current?.order ?? 0) && !race.end && race.valid !== false);
	later.sort((a, b) => a.race_order - b.race_order);
	const upcoming = later.slice(0, 8).map((race) => ({ race_id: race.race_id, order: race.race_order, number: race.race_number, pilots: (race.pilots ?? []).filter((one) => one?.pilot).map(seat) }));
	return { ...board, leaderboard, upcoming };
}

/** Keys may carry the event before the id. */
const named = (map, id) => map.get(id) ?? [...map.values()].find((one) => one.pilot_id === id || one.channel_id === id);

function unconfigured() {
	return nothing("No FPV source is configured.", "Add this to stakeout.toml and start again: ", h("code", '[source.track] kind = "fpv", url = "http://trackside.local:8080"'), ". Or see it at work with ", h("code", "stakeout demo"), ".");
}

/** A colour that the event gave a channel; only what is a colour is taken. */
const swatch = (node, value) => {
	node.style.background = /^#[0-9a-f]{6}$/i.test(value ?? "") ? value : "transparent";
};

const nameOf = (race) => (race ? `Race ${race.order ?? "–"}${race.round == null ? "" : `, round ${race.round}-${race.number ?? "?"}`}` : "");

function raceCard(words, large = false) {
	const name = h("span");
	const state = h("span.chip");
	const elapsed = h("span.num.elapsed");
	const none = h("p.soft");
	const body = h("tbody");
	const head = h("tr", h("th.num", { scope: "col" }, "Pos"), h("th", { scope: "col" }, "Pilot"), h("th.num", { scope: "col" }, "Laps"), h("th.num", { scope: "col" }, "Last"), h("th.num", { scope: "col" }, "Best"), large ? h("th.laps", { scope: "col" }, "Laps ", h("small", "s")) : null);
	const grid = h("table", h("caption.unseen", `${words} race`), h("thead", head), body);
	const node = h(`section.panel.race-card${large ? ".large" : ""}`, { "aria-label": `${words} race` }, h("div.bar", h("h2", words), name, state, h("span.grow"), elapsed), none, grid);
	const update = (race, page) => {
		none.hidden = Boolean(race);
		grid.hidden = !race;
		state.hidden = !race;
		text(none, words === "Next" ? "No race comes after the current one." : words === "Last" ? "No race has been flown yet." : "No race is up. It appears here as soon as the event has one.");
		text(name, nameOf(race), "quiet");
		if (!race) return;
		text(state, STATES[race.state] ?? race.state, "quiet");
		attr(state, "data-race", race.state);
		const best = Math.min(...race.pilots.map((pilot) => pilot.best_lap_seconds ?? Infinity));
		keyed(body, race.pilots, (pilot) => pilot.pilot, () => {
			const dot = h("i.swatch", { "aria-hidden": "true" });
			const row = h("tr", h("td.num.pos"), h("th", { scope: "row" }, dot, h("b"), h("small.soft")), h("td.num"), h("td.num"), h("td.num"), large ? h("td.laps", h("ol")) : null);
			row.dot = dot;
			return row;
		}, (row, pilot) => {
			const [pos, who, laps, latest, fastest, list] = row.children;
			const change = pilot.position_change > 0 ? " ▲" : pilot.position_change < 0 ? " ▼" : "";
			text(pos, race.state === "waiting" || race.state === "staging" ? "" : `${pilot.position}${change}`, "quiet");
			swatch(row.dot, pilot.colour);
			text(who.querySelector("b"), pilot.name ?? "?");
			text(who.querySelector("small"), ` ${pilot.channel ?? ""}`);
			text(laps, race.target_laps ? `${pilot.laps}/${race.target_laps}` : pilot.laps, true);
			text(latest, lap(pilot.last_lap_seconds), true);
			text(fastest, `${lap(pilot.best_lap_seconds)}${pilot.best_lap_seconds != null && pilot.best_lap_seconds === best ? " ★" : ""}`, true);
			cls(row, page.query.get("pilot") === pilot.pilot ? "you" : "");
			if (list) keyed(list.firstChild, (pilot.lap_seconds ?? []).map((seconds, n) => ({ n, seconds })), (one) => one.n, () => h("li.num"), (item, one) => {
				text(item, lap(one.seconds));
				cls(item, `num${one.seconds === pilot.best_lap_seconds ? " best" : ""}`);
			});
		});
	};
	return { node, update, beat: (seconds) => text(elapsed, seconds == null ? "" : `${Math.floor(seconds / 60)}:${(seconds % 60).toFixed(1).padStart(4, "0")}`) };
}

function leaderTable() {
	let you = null;
	const grid = table({
		caption: "Leaderboard of the event", key: (row) => row.pilot, state: (row) => (row.pilot === you ? "you" : ""),
		columns: [
			{ head: "Pilot", cls: "name", value: (row) => row.name ?? row.pilot }, fig("Pos", (row) => `${row.position}${row.position_change > 0 ? ` ▲${row.position_change}` : row.position_change < 0 ? ` ▼${-row.position_change}` : ""}`, { tell: "quiet" }),
			fig("Laps", (row) => num(row.laps), { tell: "quiet" }), { head: "Best in a row", unit: "s", cls: "num", value: (row) => lap(row.best_consecutive_seconds), tell: true },
			{ head: "Best lap", unit: "s", cls: "num", value: (row) => lap(row.best_lap_seconds), tell: true }, { head: "Holeshot", unit: "s", cls: "num", value: (row) => lap(row.holeshot_seconds) },
		],
	});
	return { node: grid.node, update: (rows, pilot) => {
		you = pilot;
		grid.update(rows);
	} };
}

/** "You race in N": the pilot is chosen once and kept in the address. */
function youPanel(page, changed) {
	const pick = h("select", { "aria-label": "Who are you?", change: (event) => {
		page.set("pilot", event.target.value || null, true);
		changed();
	} });
	const words = h("p.you-in", { role: "status" });
	const more = h("p.soft");
	const node = h("section.panel.you-panel", { "aria-label": "When you fly" }, h("div.bar", h("h2", "You"), pick), words, more);
	let shown = "";
	const update = (board) => {
		const names = new Map([...(board.leaderboard ?? []), ...(board.pilots ?? [])].map((one) => [one.pilot, one.name ?? one.pilot]));
		const list = [...names].sort((a, b) => a[1].localeCompare(b[1]));
		const chosen = page.query.get("pilot") ?? "";
		const key = JSON.stringify([list, chosen]);
		if (key !== shown) put(pick, h("option", { value: "" }, "Choose a pilot"), ...list.map(([id, name]) => h("option", { value: id, selected: id === chosen }, name)));
		shown = key;
		const mine = (board.pilots ?? []).find((one) => one.pilot === chosen);
		text(words, !chosen ? "" : !mine ? "You have no race left." : mine.readiness === "racing" ? "You are racing" : mine.races_away === 0 ? "You are up now" : `You race in ${mine.races_away}`, "quiet");
		text(more, !chosen ? "Choose a pilot to see when they fly next." : mine ? `Race ${mine.order ?? "–"} on ${mine.channel ?? "no channel yet"}` : "");
	};
	return { node, update };
}

function upcomingPanel() {
	const list = h("ol.upcoming");
	const none = h("p.soft", "No race comes after the current one.");
	const node = panel("Coming up", none, list);
	const update = (board, you) => {
		const races = board.upcoming ?? [board.next].filter(Boolean);
		none.hidden = races.length > 0;
		keyed(list, races.slice(0, 8), (race) => race.race_id, () => h("li", h("b"), h("span.who")), (row, race) => {
			text(row.firstChild, nameOf(race));
			keyed(row.lastChild, race.pilots, (pilot) => pilot.pilot, () => h("span.pilot", h("i.swatch", { "aria-hidden": "true" }), h("span")), (one, pilot) => {
				swatch(one.firstChild, pilot.colour);
				text(one.lastChild, pilot.name ?? "?");
				cls(one, `pilot${pilot.pilot === you ? " you" : ""}`);
			});
		});
	};
	return { node, update };
}
