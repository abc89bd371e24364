import { attr, choice, clock, cls, family, filterBox, h, hour, isOver, isRunning, keyed, nothing, panel, plural, put, raceHref, racesOf, text, tick, timeOf, unconfigured, watch } from "../kit.js";

export const title = "Racing";

const NEXT = 8;
const TYPES = { T: "Gallops", H: "Harness", G: "Greyhounds" };

export function mount(root, page) {
	let meetings = [];
	let races = [];
	const again = () => render();
	const pick = (field, words) => choice(page, field, () => [["all", "All"], ...[...new Set(races.map((race) => race[field]).filter(Boolean))].sort().map((name) => [name, TYPES[name] ?? name])], "all", words, again);
	const country = pick("country", "Country");
	const type = pick("type", "Type");
	const box = filterBox(page, "Filter by meeting or race", again);
	const next = h("ol.next-races");
	const board = h("div.meetings");
	const none = h("div", { hidden: true });
	const count = h("span.soft");
	page.put(panel("Next to go", [count, h("span.grow"), country.node, type.node, box.node], next), none, panel("Meetings", board));

	const wanted = (race) => {
		const [c, t] = [country.value, type.value];
		return (c === "all" || race.country === c) && (t === "all" || race.type === t)
			&& box.finds(`${race.label} ${race.name ?? ""}`);
	};

	function render() {
		country.render();
		type.render();
		const shown = races.filter(wanted);
		const now = clock.now();
		const coming = shown.filter((race) => !isRunning(race) && race.at != null && race.at > now - 3_600_000);
		text(count, plural(coming.length, "race still to be run", "races still to be run"));
		keyed(next, coming.slice(0, NEXT), (race) => race.id, card, updateCard);
		const byMeeting = Map.groupBy(shown, (race) => race.meetingPrint);
		const lines = meetings.filter((meeting) => byMeeting.has(meeting.fingerprint)).map((meeting) => ({ meeting, races: byMeeting.get(meeting.fingerprint).sort((a, b) => a.race_number - b.race_number) }));
		// In the order of their first races: a meeting does not move when its races are over.
		const first = (line) => Math.min(...line.races.map((race) => race.at ?? Infinity));
		lines.sort((a, b) => first(a) - first(b));
		none.hidden = races.length > 0;
		put(none, races.length ? "" : nothing("No races are known yet.", "The day's meetings are listed within seconds of the start, and again every half hour."));
		keyed(board, lines, (line) => line.meeting.fingerprint, meetingLine, updateMeeting);
		soonest(now);
	}

	function soonest(now) {
		const first = races.find((race) => wanted(race) && !isRunning(race) && race.at > now - 3_600_000);
		for (const cell of board.querySelectorAll("a.race")) attr(cell, "data-next", cell.race === first?.id ? "" : null);
	}

	watch(page, {
		load: async (signal) => {
			const found = await family("racing", signal);
			const days = await Promise.all(found.map(async (source) => [source.name, await racesOf(source.name, signal, true)]));
			return [found, days];
		},
		show: ([found, days]) => {
			if (!found.length) return put(root, unconfigured("racing", '[source.nz] kind = "racing"'));
			meetings = days.flatMap(([, day]) => day.meetings);
			races = days.flatMap(([source, day]) => day.list.map((race) => ({ ...race, source }))).sort((a, b) => (a.at ?? Infinity) - (b.at ?? Infinity) || a.label.localeCompare(b.label));
			render();
		},
		event: (event) => event.type.startsWith("racing.race."),
		poll: (poll) => poll.changes > 0 && poll.target.startsWith("race/"),
		targets: () => true,
		least: 1_000,
	});
	page.end(tick(soonest, 1_000));
}

function card(race) {
	const time = timeOf(race.at, "start");
	const link = h("a.row", { href: raceHref(race.source, race.id) }, time, h("b"), h("span.soft.name"), h("span.soft.more"));
	return Object.assign(h("li", link), { time });
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
		const link = h("a.race", { href: raceHref(race.source, race.id) }, h("small", `R${race.race_number ?? "?"}`), time, h("span.status"));
		link.race = race.id;
		return Object.assign(h("li", link), { time });
	}, (line, race) => {
		const link = line.firstChild;
		line.time.set(race.at, "start", isRunning(race));
		cls(link, `race row ${(race.status ?? "open").toLowerCase()}`);
		if (text(link.querySelector(".status"), status(race), "quiet")) attr(link, "title", `${race.label}: ${race.name ?? ""}, ${race.status}`);
	});
}

// A word and a shape for the state of a race.
export function status(race) {
	const name = race.status ?? "Open";
	if (isOver(race)) return /abandoned/i.test(name) ? "✕ Abandoned" : "● Final";
	return { closed: "■ Closed", interim: "◐ Interim", open: race.start_confirmed ? "■ Running" : "○ Open" }[name.toLowerCase()] ?? name;
}
