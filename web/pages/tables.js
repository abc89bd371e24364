// Tables: which evenings have tables, what just opened, what is still open.

import { all, get, path } from "../api.js";
import { attr, cls, h, keyed, put, text } from "../dom.js";
import { day, num, plural, span, time } from "../format.js";
import { clock } from "../live.js";
import { family } from "../parts/names.js";
import { choice, filterBox } from "../parts/table.js";
import { timeOf } from "../parts/time.js";
import { nothing, watch } from "../watch.js";

export const title = "Tables";

export function mount(root, page) {
	const place = h("div");
	const heat = heatPanel(page, () => again.again());
	let answer = null;
	const sizes = choice(page, "party", () => [["any", "Any size"], ["2", "2"], ["4", "4"], ["6", "6"]], "any", "Party size", () => again.again());
	const follow = choice(page, "venues", () => [["all", "All venues"], ["followed", "Followed"]], "all", "Which venues", () => again.again());
	const box = filterBox(page, "Filter by venue or neighbourhood", () => answer && render());
	const fresh = slotList("Just opened", "Nothing opened in the last half hour. Drops appear here within seconds of being seen.");
	const open = slotList("Still open", "No drop is still open.");
	const dateChip = h("button.chip", { type: "button", hidden: true, click: () => { page.set("date", null, true); again.again(); } });
	put(root, place, h("section.panel", { "aria-label": "Drops still open by day and time" }, h("div.bar", h("h2", "Drops still open"), h("span.grow"), sizes.node, follow.node, dateChip, box.node), heat.node),
		h("div.halves", fresh.node, open.node));

	function render() {
		const date = page.query.get("date");
		dateChip.hidden = !date;
		if (date) text(dateChip, `${day(date)} ✕`);
		heat.update(answer.buckets, date);
		fresh.update(answer.source, flat(answer.fresh).sort((a, b) => time(b.slot.opened_at) - time(a.slot.opened_at)), box.words);
		open.update(answer.source, flat(answer.open).sort((a, b) => a.slot.start.localeCompare(b.slot.start) || (a.venue.venue_name ?? "").localeCompare(b.venue.venue_name ?? "")), box.words);
	}

	const again = watch(page, {
		every: 5_000,
		place,
		load: async (signal) => {
			const sources = await family("tables", signal);
			const source = page.query.get("source") ?? sources[0]?.name;
			if (!source) return null;
			const mine = page.query.get("venues") === "followed" ? [...followed(source), "nobody"].join() : null;
			const filter = { date: page.query.get("date"), party_size: page.query.get("party"), follow: mine };
			const ask = (what, query) => get(path("/v1/tables", source, what, query), signal);
			const [buckets, targets, fresh, open, every] = await Promise.all([ask("buckets"), all(path("/v1/targets", { source, role: "bucket", limit: 1000 }), signal), ask("just-opened", filter), ask("still-open", filter), ask("still-open")]);
			const counts = new Map();
			for (const { slot } of flat(every)) counts.set(slot.bucket_id, (counts.get(slot.bucket_id) ?? 0) + 1);
			const intervals = new Map(targets.map((target) => [target.key, target.interval_ms]));
			// The day and the time are the end of a bucket's name; a market may stand before them.
			const placed = buckets.map((bucket) => {
				const [date, time_] = bucket.bucket_id.match(/\d{4}-\d\d-\d\d_\d\d:\d\d$/)?.[0].split("_") ?? [];
				return { ...bucket, date, time: time_, drops: counts.get(bucket.bucket_id) ?? 0, interval_ms: intervals.get(bucket.bucket_id) };
			});
			return { source, buckets: placed.filter((bucket) => bucket.date), fresh, open };
		},
		show: (found) => {
			if (!found) return put(root, unconfigured());
			answer = found;
			render();
		},
		on: (event) => event.type.startsWith("tables."),
		poll: (poll) => poll.changes > 0,
	});
}

function unconfigured() {
	return nothing("No tables source is configured.", "Add this to stakeout.toml and start again: ", h("code", '[source.nyc] kind = "tables", market = { box = [40.69, -74.03, 40.77, -73.97], zone = "America/New_York" }'), ". Or see it at work with ", h("code", "stakeout demo"), ".");
}

const flat = (days) => days.flatMap((one) => one.venues.flatMap((venue) => venue.slots.map((slot) => ({ date: one.date, venue, slot }))));

/** Days across, times down; the number is of drops that are still open, the shade says the same, a stale bucket says so. */
function heatPanel(page, changed) {
	const grid = h("table.heat");
	const none = h("p.soft", "No bucket has been scanned yet.");
	const node = h("div.scroll", { tabindex: "0", role: "region", "aria-label": "Drops still open by day and time" }, none, grid);
	const update = (buckets, date) => {
		none.hidden = buckets.length > 0;
		const dates = [...new Set(buckets.map((bucket) => bucket.date))].sort();
		const times = [...new Set(buckets.map((bucket) => bucket.time))].sort();
		const most = Math.max(1, ...buckets.map((bucket) => bucket.drops));
		const rows = [{ key: "head" }, ...times.map((key) => ({ key }))];
		keyed(grid, rows, (row) => row.key, (row) => h("tr", row.key === "head" ? h("td") : h("th", { scope: "row" }, row.key)), (line, row) => {
			const cells = dates.map((one) => ({ date: one, bucket: row.key === "head" ? null : buckets.find((bucket) => bucket.date === one && bucket.time === row.key) }));
			line.box ??= new Map();
			for (const cell of cells) {
				let box = line.box.get(cell.date);
				if (!box) {
					box = row.key === "head" ? h("th", { scope: "col" }) : h("td", h("button", { type: "button", click: () => { page.set("date", page.query.get("date") === cell.date ? null : cell.date, true); changed(); } }));
					line.box.set(cell.date, box);
				}
				line.append(box);
				if (row.key === "head") text(box, day(cell.date));
				else paint(box.firstChild, cell.bucket, most, cell.date === date);
			}
			for (const [key, box] of line.box) if (!dates.includes(key)) (box.remove(), line.box.delete(key));
		});
	};
	return { node, update };
}

function paint(button, bucket, most, chosen) {
	const open = bucket?.drops;
	text(button, bucket ? (bucket.stale ? `◌ ${num(open)}` : num(open)) : "–", "quiet");
	const level = bucket && open ? Math.max(1, Math.ceil((open / most) * 5)) : 0;
	cls(button, `num heat-${level}${bucket?.stale ? " stale" : ""}`);
	attr(button, "aria-pressed", String(chosen));
	const scanned = bucket?.last_scan ? `scanned ${span(clock.now() - time(bucket.last_scan))} ago` : "not scanned yet";
	attr(button, "title", bucket ? `${plural(open, "drop")} still open; ${scanned}${bucket.stale ? ", too long ago to be trusted" : ""}; every ${span(bucket.interval_ms)}` : "not watched");
	attr(button, "aria-label", bucket ? `${bucket.date} ${bucket.time}: ${plural(open, "drop")} still open${bucket.stale ? ", stale" : ""}` : "not watched");
}

function slotList(words, emptiness) {
	const list = h("ol.slots");
	const none = h("p.soft", emptiness);
	const count = h("span.soft.num");
	const node = h("section.panel", { "aria-label": words }, h("div.bar", h("h2", words), count), none, list);
	const update = (source, slots, filter) => {
		const shown = slots.filter(({ venue }) => !filter || `${venue.venue_name} ${venue.neighborhood}`.toLowerCase().includes(filter));
		none.hidden = shown.length > 0;
		text(count, shown.length ? num(shown.length) : "");
		keyed(list, shown.slice(0, 200), ({ slot }) => `${slot.slot_id}`, (one) => slotLine(source, one), (line, one) => line.update(one));
	};
	return { node, update };
}

function slotLine(source, { venue }) {
	const opened = timeOf(null);
	opened.classList.add("num");
	const star = followButton(source, venue.venue_id);
	const line = h("li", star.node, h("a.row", { href: path("/venue", { source, id: venue.venue_id }) }, h("b"), h("span.soft")), h("span.when.num"), h("span.sizes.soft"), h("span.opened", opened));
	line.update = ({ date, venue: one, slot }) => {
		text(line.querySelector("b"), one.venue_name ?? one.venue_id);
		text(line.querySelector(".soft"), one.neighborhood ?? "");
		text(line.querySelector(".when"), `${day(date)} ${slot.start.slice(11, 16)}`);
		text(line.querySelector(".sizes"), slot.party_sizes?.length ? `for ${slot.party_sizes.join(", ")}` : "");
		opened.set(time(slot.opened_at), "age");
		attr(opened, "title", `first seen ${slot.first_seen}, last seen ${slot.last_seen ?? "?"}; ${slot.evidence === "empty_prev" ? "the bucket was empty before" : "the venue had nothing before"}`);
		star.update();
	};
	return line;
}

/** The venues that are followed here: kept by this browser. */
export function followed(source) {
	try {
		return new Set(JSON.parse(localStorage.getItem(`follow/${source}`) ?? "[]"));
	} catch {
		return new Set();
	}
}

/** A star that follows a venue. */
export function followButton(source, venue) {
	const node = h("button.star", { type: "button", click: () => {
		const all_ = followed(source);
		if (!all_.delete(venue)) all_.add(venue);
		try {
			localStorage.setItem(`follow/${source}`, JSON.stringify([...all_]));
		} catch {
			attr(node, "title", "This browser keeps nothing, so nothing can be followed.");
		}
		update();
	} });
	const update = () => {
		const is = followed(source).has(venue);
		text(node, is ? "★" : "☆");
		attr(node, "aria-pressed", String(is));
		attr(node, "aria-label", is ? "Stop following" : "Follow");
	};
	update();
	return { node, update };
}
