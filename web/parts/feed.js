// What was told, one line each, the newest first.

import { get, path } from "../api.js";
import { h, keyed, panel, sign, text, tint } from "../dom.js";
import { plain, slotTime, time } from "../format.js";
import { live } from "../live.js";
import { watch } from "../watch.js";
import { label, labels, person, targetHref } from "./names.js";
import { timeOf } from "./time.js";

const QUIET = new Set(["bet_percentage", "win_pool_amount", "place_pool_amount", "pool_win", "pool_place", "hold_percentage", "seen_at", "mover", "favourite"]);
const SHAPES = [
	[/^alert\./, "◆", "warn"],
	[/\.(final|ended|drop)$/, "●", "good"], [/\.(abandoned|lost|credentials|invalidated|reset)$/, "✕", "bad"],
	[/\.(scratched|retimed|reopened|resumed)$/, "▲", "warn"], [/\.(started|closed|interim|switched|current_changed|reseated|back)$/, "■", "accent"],
];

// Records say what their upstream says: a name may be anything, and is text here.
const said = (value) => (typeof value === "string" ? value : value == null ? null : plain(value));

// The race that an event is about, where there is one; otherwise the target that was polled, if it was any.
function placeOf({ source, target, data }) {
	const race = `race/${data?.record?.race ?? data?.race_id}`;
	return label(source, race) !== race ? race : target === "derived" ? null : target;
}

export function sentence(event) {
	const { data, source } = event;
	if (event.type === "alert.raised") return { who: data.title, what: data.text };
	const record = data?.record ?? {};
	const named = [person(source, record.pilot), record.name, record.venue_name, data?.now?.name].map(said).find(Boolean);
	const who = named ?? label(source, placeOf(event) ?? event.subject_key);
	const changes = data?.changes ?? [];
	const loud = changes.filter((change) => !QUIET.has(change.field));
	const moved = (loud.length ? loud : changes).slice(0, 3).map(({ field, old, new: now }) => {
		const way = typeof old === "number" && typeof now === "number" ? (now > old ? "▲" : "▼") : "→";
		return `${field.replaceAll("_", " ")} ${plain(old)} ${way} ${plain(now)}`;
	});
	if (data?.before?.name && data?.now?.name) moved.push(`was ${said(data.before.name)}`);
	if (typeof data?.before === "string") moved.push(`after ${label(source, `race/${data.before}`)}`);
	if (data?.reseated) moved.push(data.reseated.map((pilot) => person(source, pilot) ?? said(pilot)).join(", "));
	if (!moved.length && Number.isFinite(record.position)) moved.push(`position ${record.position}`);
	if (record.venue_name && /^\d{4}-\d\d-\d\dT/.test(record.start)) moved.push(slotTime(record.start));
	if (Number.isFinite(record.length_seconds)) moved.push(`lap ${plain(record.lap_number)}: ${record.length_seconds.toFixed(3)} s`);
	return { who, what: moved.join(", ") };
}

function line(event) {
	const { who, what } = sentence(event);
	const [, shape, tone] = SHAPES.find(([pattern]) => pattern.test(event.type)) ?? [null, "·", "soft"];
	const place = placeOf(event);
	const where = place && label(event.source, place);
	return h("li", { "data-seq": event.seq }, sign(shape, tone), timeOf(time(event.at)),
		h("span.type", event.type.replace(/^[a-z]+\./, "")), h("b", who), h("span.what.num", what),
		!place || who === where ? null : h("a.where", { href: targetHref(event.source, place) }, where));
}

const SHOWN_MAX = 1_000; // A page that is open for days, or read back for hours, stays quick.

// A live list. `wants(event)` filters what arrives; `query` is asked of the log for what came before.
export function feed(page, { wants = () => true, query = {}, most = 40, wide = false }) {
	const list = h(wide ? "ol.feed.wide" : "ol.feed", { "aria-label": "What was told" });
	const more = h("button.quiet", { hidden: true, click: older }, "Older");
	const none = h("p.soft", { hidden: true }, "Nothing has been told yet. Events appear here as they happen.");
	const rest = h("p.soft", { hidden: true }, "Older events are in the log: /v1/events.");
	const place = h("div");
	const node = h("div", place, none, list, more, rest);
	let shown = [];
	let earlier = false; // Whether the log has more before the oldest one shown.
	let limit = most;
	let asking = false; // Whether older ones are on their way: nothing is let go that they are to join on to.

	const render = (fresh = false) => {
		if (shown.length > limit && !asking) {
			// What is let go can be asked for again: the oldest one shown is where it goes on.
			shown.length = limit;
			earlier = true;
		}
		none.hidden = shown.length > 0;
		const before = list.keyed?.size ?? 0;
		keyed(list, shown, (event) => event.seq, (event) => {
			const made = line(event);
			if (fresh && before) queueMicrotask(() => tint(made));
			return made;
		});
		more.hidden = !earlier || limit >= SHOWN_MAX;
		rest.hidden = !earlier || !more.hidden;
	};
	const take = (events) => {
		const seen = new Set(shown.map((event) => event.seq));
		shown = [...shown, ...events.filter((event) => !seen.has(event.seq))].sort((a, b) => b.seq - a.seq);
	};
	function show([{ items, next }]) {
		// What was shown before a long absence does not join on to this: it would leave a hole.
		const joins = !next || shown.some((event) => event.seq === items.at(-1).seq);
		if (!joins) [shown, limit] = [shown.filter((event) => event.seq > items.at(-1).seq), most];
		if (!joins || !next) earlier = Boolean(next);
		take(items);
		render();
	}
	async function older() {
		if (asking) return;
		asking = true;
		try {
			const { items, next } = await get(path("/v1/events", { ...query, limit: most, before: shown.at(-1).seq }), page.signal);
			earlier = Boolean(next);
			take(items);
			limit = Math.min(SHOWN_MAX, Math.max(limit, shown.length));
			text(more, "Older");
		} catch ({ message }) {
			text(more, `Older: ${message}, try again`);
		} finally {
			asking = false;
		}
		render();
	}
	let pending = false;
	page.end(live.on("event", (event) => {
		if (!wants(event)) return;
		shown.unshift(event);
		if (pending) return;
		pending = true;
		// Many at once are drawn once.
		setTimeout(() => {
			pending = false;
			shown.sort((a, b) => b.seq - a.seq);
			render(true);
		}, 150);
	}));
	watch(page, {
		place, show,
		every: 3_600_000, // What happens meanwhile is told by the stream.
		// Names come with it: a line is written once.
		load: (signal) => Promise.all([get(path("/v1/events", { ...query, limit: most }), signal), labels(signal)]),
	});
	return { node };
}

// The same in a panel of its own; of one target when it is named.
export function told(page, name, { source, target, ...options } = {}) {
	const mine = target && { query: { source, target }, most: 20, wants: (event) => event.source === source && event.target === target };
	const node = panel(name, feed(page, { ...options, ...mine }).node);
	node.classList.add("told");
	return node;
}
