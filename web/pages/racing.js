// Racing: the next races, and all meetings with their races, in the order of their starts.

import { attr, cls, h, keyed, panel, put, text } from "../dom.js";
import { hour, plural } from "../format.js";
import { clock, tick } from "../live.js";
import { family, isOver, isRunning, raceHref, racesOf } from "../parts/names.js";
import { choice, filterBox } from "../parts/table.js";
import { timeOf } from "../parts/time.js";
import { nothing, watch } from "../watch.js";

export const title = "Racing";

const NEXT = 8;
const TYPES = { T: "Gallops", H: "Harness", G: "Greyhounds" };

export function mount(root, page) {
	let meetings = [];
	let races = [];
	const again = () => render();
	const country = choice(page, "country", () => [["all", "All"], ...[...new Set(races.map((race) => race.country).filter(Boolean))].sort().map((name) => [name, name])], "all", "Country", again);
	const type = choice(page, "type", () => [["all", "All"], ...[...new Set(races.map((race) => race.type).filter(Boolean))].sort().map((name) => [name, TYPES[name] ?? name])], "all", "Type", again);
	const box = filterBox(page, "Filter by meeting or race", again);
	const next = h("ol.next-races");
	const board = h("div.meetings");
	const none = h("div", { hidden: true });
	const count = h("span.soft");
	const place = h("div");
	put(root, place, h("section.panel", { "aria-label": "Next to go" }, h("div.bar", h("h2", "Next to go"), count, h("span.grow"), country.node, type.node, box.node), next),
		none, panel("Meetings", board));

	const wanted = (race) => {
		const [c, t] = [country.value, type.value];
		return (c === "all" || race.country === c) && (t === "all" || race.type === t)
			&& (!box.words || `${race.label} ${race.name ?? ""}`.toLowerCase().includes(box.words));
	};

	function render() {
		country.render();
		type.render();
		const shown = races.filter(wanted);
		const now = clock.now();
		const coming = shown.filter((race) => !isRunning(race) && race.at != null && race.at > now - 3_600_000);
		text(count, plural(coming.length, "race still to be run", "races still to be run"));
		keyed(next, coming.slice(0, NEXT), (race) => race.id, card, updateCard);
		const byMeeting = new Map();
		for (const race of shown) {
			if (!byMeeting.has(race.meetingPrint)) byMeeting.set(race.meetingPrint, []);
			byMeeting.get(race.meetingPrint).push(race);
		}
		const lines = meetings.filter((meeting) => byMeeting.has(meeting.fingerprint)).map((meeting) => ({ meeting, races: byMeeting.get(meeting.fingerprint).sort((a, b) => a.race_number - b.race_number) }));
		// In the order of their first races: a meeting does not move when its races are over.
		lines.sort((a, b) => Math.min(...a.races.map((race) => race.at ?? Infinity)) - Math.min(...b.races.map((race) => race.at ?? Infinity)));
		none.hidden = races.length > 0;
		put(none, races.length ? "" : nothing("No races are known yet.", "The day's meetings are listed within seconds of the start, and again every half hour."));
		keyed(board, lines, (line) => line.meeting.fingerprint, meetingLine, updateMeeting);
		soonest(now);
	}

	/** The race that goes next is marked. */
	function soonest(now) {
		const first = races.find((race) => wanted(race) && !isRunning(race) && race.at > now - 3_600_000);
		for (const cell of board.querySelectorAll("a.race")) attr(cell, "data-next", cell.race === first?.id ? "" : null);
	}

	watch(page, {
		every: 4_000,
		place,
		load: async (signal) => {
			const found = await family("racing", signal);
			const days = await Promise.all(found.map(async (source) => [source.name, await racesOf(source.name, signal, true)]));
			return [found, days];
		},
		show: ([found, days]) => {
			if (!found.length) return put(root, unconfigured());
			meetings = days.flatMap(([, day]) => day.meetings);
			races = days.flatMap(([source, day]) => day.list.map((race) => ({ ...race, source }))).sort((a, b) => (a.at ?? Infinity) - (b.at ?? Infinity) || a.label.localeCompare(b.label));
			render();
		},
		on: (event) => event.type.startsWith("racing.race."),
		poll: (poll) => poll.changes > 0 && poll.target.startsWith("race/"),
	});
	let drawn = 0;
	page.end(tick((now) => {
		if (performance.now() - drawn < 1_000) return;
		drawn = performance.now();
		soonest(now);
	}));
}

function unconfigured() {
	return nothing("No racing source is configured.", "Add this to stakeout.toml and start again: ", h("code", '[source.nz] kind = "racing"'), ". Or see it at work with ", h("code", "stakeout demo"), ".");
}

function card(race) {
	const time = timeOf(race.at, "start");
	time.classList.add("num");
	const node = h("li", h("a.row", { href: raceHref(race.source, race.id) }, time, h("b"), h("span.soft.name"), h("span.soft.more")));
	node.time = time;
	return node;
}

function updateCard(node, race) {
	node.time.set(race.at, "start", isRunning(race));
	text(node.querySelector("b"), race.label);
	text(node.querySelector(".name"), race.name);
	text(node.querySelector(".more"), [hour(race.at), race.distance ? `${race.distance} m` : "", TYPES[race.type] ?? race.type, race.track_condition].filter(Boolean).join(" · "));
}

function meetingLine() {
	return h("div.meeting", h("div.who", h("b"), h("span.soft")), h("ol.races"));
}

function updateMeeting(node, { meeting, races }) {
	text(node.querySelector("b"), meeting.body.name);
	text(node.querySelector(".soft"), [meeting.body.country, meeting.body.category_name ?? TYPES[meeting.body.category] ?? meeting.body.category, meeting.body.track_condition].filter(Boolean).join(" · "));
	keyed(node.querySelector("ol"), races, (race) => race.id, (race) => {
		const time = timeOf(race.at, "start");
		time.classList.add("num");
		const link = h("a.race", { href: raceHref(race.source, race.id) }, h("small", `R${race.race_number ?? "?"}`), time, h("span.status"));
		link.race = race.id;
		const line = h("li", link);
		line.time = time;
		return line;
	}, (line, race) => {
		const link = line.firstChild;
		line.time.set(race.at, "start", isRunning(race));
		cls(link, `race row ${(race.status ?? "open").toLowerCase()}`);
		if (text(link.querySelector(".status"), status(race), "quiet")) attr(link, "title", `${race.label}: ${race.name ?? ""}, ${race.status}`);
	});
}

/** A word and a shape for the state of a race. */
export function status(race) {
	const name = race.status ?? "Open";
	if (isOver(race)) return /abandoned/i.test(name) ? "✕ Abandoned" : "● Final";
	return { closed: "■ Closed", interim: "◐ Interim", open: race.start_confirmed ? "■ Running" : "○ Open" }[name.toLowerCase()] ?? name;
}
