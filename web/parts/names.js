// What people call things: "Ellerslie R5" for a key like race/6a1f….

import { all, get, path } from "../api.js";
import { time } from "../format.js";

const FRESH_MS = 30_000;
const known = new Map();
let sources = null;
let asked = 0;

/** The sources, asked for again now and then. */
export async function sourcesOf(signal, fresh = false) {
	if (!sources || fresh || performance.now() - asked > FRESH_MS) {
		sources = await get("/v1/sources", signal);
		asked = performance.now();
	}
	return sources;
}

/** The sources of a family. */
export async function family(name, signal) {
	return (await sourcesOf(signal)).filter((source) => source.family === name);
}

/** Races of a racing source by their target's key, with their meeting; kept for half a minute. */
export async function racesOf(source, signal, fresh = false) {
	const before = known.get(source);
	if (before && !fresh && performance.now() - before.at < FRESH_MS) return before;
	const [races, meetings] = await Promise.all([
		get(path("/v1/racing", source, "races", { limit: 1000 }), signal),
		get(path("/v1/racing", source, "meetings"), signal),
	]);
	const byPrint = new Map(meetings.map((meeting) => [meeting.fingerprint, meeting]));
	const list = races.map((race) => {
		const meeting = byPrint.get(race.parent) ?? null;
		return {
			id: race.key, ...race.body, record: race, meeting: meeting?.body ?? null, meetingPrint: race.parent,
			at: time(race.body.start_time),
			label: `${meeting?.body.name ?? race.body.meeting ?? "Race"} R${race.body.race_number ?? "?"}`,
		};
	});
	const found = { at: performance.now(), list, meetings, byKey: new Map(list.map((race) => [`race/${race.id}`, race])) };
	known.set(source, found);
	return found;
}

/** The same for drone races, which are known by their place in the order. */
async function flightsOf(source, signal) {
	const before = known.get(source);
	if (before && performance.now() - before.at < FRESH_MS) return;
	const records = (kind) => all(path("/v1/records", source, { kind, limit: 1000 }), signal, 5_000);
	const [races, pilots] = await Promise.all([records("fpv_races"), records("fpv_pilots")]);
	const named = races.filter(({ body }) => body.race_order != null).map(({ body }) => [`race/${body.race_id}`, { label: `Race ${body.race_order}` }]);
	known.set(source, { at: performance.now(), list: [], byKey: new Map(named), people: new Map(pilots.map(({ body }) => [body.pilot_id, body.name])) });
}

/** Learns the names of everything that has one. */
export async function labels(signal) {
	const learn = { racing: racesOf, fpv: flightsOf };
	for (const source of await sourcesOf(signal)) {
		try {
			await learn[source.family]?.(source.name, signal);
		} catch {
			// Keys are names, too.
		}
	}
}

export function label(source, key) {
	return known.get(source)?.byKey.get(key)?.label ?? key;
}

/** A pilot's name. */
export const person = (source, id) => known.get(source)?.people?.get(id);

export const targetHref = (source, key) => path("/target", { source, key });
export const raceHref = (source, id) => path("/race", { source, id });
export const isOver = (race) => /^(final|abandoned)$/i.test(race.status ?? "");
export const isRunning = (race) => Boolean(race.start_confirmed) || /^(interim|final|abandoned)$/i.test(race.status ?? "");
