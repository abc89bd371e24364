// What people call things: "Ellerslie R5" for a key like race/6a1f….

import { all, get, path } from "../api.js";
import { time } from "../format.js";

const FRESH_MS = 30_000;
const known = new Map();
let sources = null;
let asked = 0;

// The sources, asked for again now and then.
export async function sourcesOf(signal, fresh = false) {
	if (!sources || fresh || performance.now() - asked > FRESH_MS) {
		sources = await get("/v1/sources", signal);
		asked = performance.now();
	}
	return sources;
}

export async function family(name, signal) {
	return (await sourcesOf(signal)).filter((source) => source.family === name);
}

// What a source's day is made of, kept for half a minute.
async function kept(source, fresh, ask) {
	const before = known.get(source);
	if (before && !fresh && performance.now() - before.at < FRESH_MS) return before;
	known.set(source, { ...(await ask()), at: performance.now() });
	return known.get(source);
}

// Races of a racing source by their target's key, with their meeting.
export const racesOf = (source, signal, fresh) => kept(source, fresh, async () => {
	const [races, meetings] = await Promise.all([get(path("/v1/racing", source, "races", { limit: 1000 }), signal), get(path("/v1/racing", source, "meetings"), signal)]);
	const names = new Map(meetings.map((meeting) => [meeting.fingerprint, meeting.body.name]));
	const list = races.map(({ key, parent, body }) => ({
		id: key, ...body, meetingPrint: parent, at: time(body.start_time), label: `${names.get(parent) ?? body.meeting ?? "Race"} R${body.race_number ?? "?"}`,
	}));
	return { list, meetings, byKey: new Map(list.map((race) => [`race/${race.id}`, race])) };
});

// The same for drone races, which are known by their place in the order; with pilots and channels.
export const flightsOf = (source, signal, fresh) => kept(source, fresh, async () => {
	const records = (kind) => all(path("/v1/records", source, { kind: `fpv_${kind}`, limit: 1000 }), signal, 5_000);
	const [races, pilots, channels, events] = await Promise.all(["races", "pilots", "channels", "events"].map(records));
	const named = races.filter(({ body }) => body.race_order != null).map(({ body }) => [`race/${body.race_id}`, { label: `Race ${body.race_order}` }]);
	for (const { key } of events) for (const file of ["event", "rounds", "pilots", "results"]) named.push([`${file}/${key}`, { label: file }]);
	const by = (list, id) => new Map(list.map(({ body }) => [body[id], body]));
	return { races, byKey: new Map(named), pilots: by(pilots, "pilot_id"), channels: by(channels, "channel_id") };
});

// Learns the names of everything that has one; keys are names, too.
export async function labels(signal) {
	const learn = { racing: racesOf, fpv: flightsOf };
	await Promise.allSettled((await sourcesOf(signal)).map(({ family: one, name }) => learn[one]?.(name, signal)));
}

export function label(source, key) {
	return known.get(source)?.byKey.get(key)?.label ?? key;
}

export const person = (source, id) => known.get(source)?.pilots?.get(id)?.name;

export const targetHref = (source, key) => path("/target", { source, key });
export const raceHref = (source, id) => path("/race", { source, id });
export const isOver = (race) => /^(final|abandoned)$/i.test(race.status ?? "");
export const isRunning = (race) => Boolean(race.start_confirmed) || /^(interim|final|abandoned)$/i.test(race.status ?? "");
