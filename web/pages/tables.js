import { attr, change, choice, clock, cls, day, family, filterBox, get, h, keyed, num, panel, path, plural, put, say, scroll, span, text, time, timeOf, unconfigured, watch } from "../kit.js";

export const title = "Tables";

export function mount(root, page) {
	let answer = null;
	let source = null;
	const again = () => lists.again();
	const shows = choice(page, "count", () => [["open", "Open tables"], ["drops", "Openings in 24 h"]], "open", "What the numbers count", () => answer && render());
	const heat = heatPanel(page, again);
	const sizes = choice(page, "party", () => [["any", "Any size"], ["2", "2"], ["4", "4"], ["6", "6"]], "any", "Party size", again);
	const follow = choice(page, "venues", () => [["all", "All venues"], ["followed", "Followed"]], "all", "Which venues", again);
	const box = filterBox(page, "Filter by venue or neighbourhood", () => answer && render());
	const fresh = slotList("Just opened", "Nothing opened in the last half hour. Drops appear here within seconds of being seen.");
	const open = slotList("Still open", "No drop is still open.");
	const dateChip = h("button.chip", { hidden: true, click: () => { page.set("date", null, true); again(); } });
	page.put(panel("Tables by day and time", [shows.node, h("span.grow"), dateChip], heat.node),
		h("div.bar", h("h2.unseen", "Drops"), sizes.node, follow.node, box.node), h("div.halves", fresh.node, open.node));

	function render() {
		const date = page.get("date");
		dateChip.hidden = !date;
		if (date) text(dateChip, `${day(date)} ✕`);
		heat.update(answer.buckets, date, shows.value);
		fresh.update(answer, flat(answer.fresh).sort((a, b) => time(b.slot.opened_at) - time(a.slot.opened_at)), box.words);
		open.update(answer, flat(answer.open).sort((a, b) => a.slot.start.localeCompare(b.slot.start) || (a.venue.venue_name ?? "").localeCompare(b.venue.venue_name ?? "")), box.words);
	}

	const lists = watch(page, {
		load: async (signal) => {
			const sources = await family("tables", signal);
			source = page.get("source") ?? sources[0]?.name;
			if (!source) return null;
			const followed = await followedOf(source, signal);
			const only = page.get("venues") === "followed" ? [...followed, "nobody"].join() : null;
			const size = page.get("party");
			const filter = { date: page.get("date"), party_size: size, follow: only };
			const ask = (what, query) => get(path("/v1/tables", source, what, query), signal);
			const [buckets, fresh, open] = await Promise.all([ask("buckets"), ask("just-opened", filter), ask("still-open", filter)]);
			// The day and the time are the end of a bucket's name; a market may stand before them.
			const placed = buckets.map((bucket) => {
				const [date, time_] = bucket.bucket_id.match(/\d{4}-\d\d-\d\d_\d\d:\d\d$/)?.[0].split("_") ?? [];
				return { ...bucket, date, time: time_ };
			});
			return { source, followed, buckets: placed.filter((bucket) => bucket.date), fresh, open };
		},
		show: (found) => {
			if (!found) return put(root, unconfigured("tables", '[source.nyc] kind = "tables", market = { box = [40.69, -74.03, 40.77, -73.97], zone = "America/New_York" }'));
			answer = found;
			render();
		},
		least: 1_000,
		event: (event) => event.type.startsWith("tables."),
		poll: (poll) => poll.source === source,
	});
}

const flat = (days) => days.flatMap((one) => one.venues.flatMap((venue) => venue.slots.map((slot) => ({ date: one.date, venue, slot }))));

// Days across, times down; the shade says the same as the number, a stale bucket says so.
function heatPanel(page, changed) {
	const grid = h("table.heat");
	const none = h("p.soft", "No bucket has been scanned yet.");
	const node = scroll("", "Tables by day and time", none, grid);
	const update = (buckets, date, shows) => {
		none.hidden = buckets.length > 0;
		const count = (bucket) => (shows === "drops" ? bucket.drops_24h : bucket.open_slots) ?? 0;
		const dates = [...new Set(buckets.map((bucket) => bucket.date))].sort();
		const times = [...new Set(buckets.map((bucket) => bucket.time))].sort();
		const most = Math.max(1, ...buckets.map(count));
		const cells = Map.groupBy(buckets, (bucket) => `${bucket.date} ${bucket.time}`);
		const cellOf = (key, one) => (key === "head" ? h("th", { scope: "col" }) : h("td", h("button", { click: () => {
			page.set("date", page.get("date") === one ? null : one, true);
			changed();
		} })));
		keyed(grid, ["head", ...times], (key) => key, (key) => h("tr", key === "head" ? h("td") : h("th", { scope: "row" }, key)), (line, key) => {
			line.box ??= new Map();
			for (const one of dates) {
				if (!line.box.has(one)) line.box.set(one, cellOf(key, one));
				const cell = line.box.get(one);
				line.append(cell);
				if (key === "head") text(cell, day(one));
				else paint(cell.firstChild, cells.get(`${one} ${key}`)?.[0], count, most, one === date);
			}
			for (const [one, cell] of line.box) if (!dates.includes(one)) (cell.remove(), line.box.delete(one));
		});
	};
	return { node, update };
}

function paint(button, bucket, count, most, chosen) {
	const n = bucket ? count(bucket) : 0;
	text(button, bucket ? (bucket.stale ? `◌ ${num(n)}` : num(n)) : "–", "quiet");
	button.style.setProperty("--heat", Math.ceil((n / most) * 5));
	cls(button, `num${bucket?.stale ? " stale" : ""}`);
	attr(button, "aria-pressed", String(chosen));
	const scanned = bucket?.last_scan ? `scanned ${span(clock.now() - time(bucket.last_scan))} ago` : "not scanned yet";
	const words = bucket ? `${plural(bucket.open_slots ?? 0, "open table")} at ${plural(bucket.venues_open ?? 0, "venue")}; ${plural(bucket.drops_24h, "opening")} in 24 hours, ${num(bucket.drops_open)} of all still open` : "not watched";
	attr(button, "title", bucket ? `${words}; ${scanned}${bucket.stale ? "; stale" : ""}` : words);
	attr(button, "aria-label", bucket ? `${bucket.date} ${bucket.time}: ${words}${bucket.stale ? ", stale" : ""}` : words);
}

function slotList(words, emptiness) {
	const list = h("ol.slots");
	const none = h("p.soft", emptiness);
	const count = h("span.soft.num");
	const node = panel(words, [count], none, list);
	const update = ({ source, followed }, slots, filter) => {
		const shown = slots.filter(({ venue }) => !filter || `${venue.venue_name} ${venue.neighborhood}`.toLowerCase().includes(filter));
		none.hidden = shown.length > 0;
		text(count, shown.length ? num(shown.length) : "");
		keyed(list, shown.slice(0, 200), ({ slot }) => slot.slot_id, (one) => slotLine(source, one), (line, one) => line.update(one, followed));
	};
	return { node, update };
}

function slotLine(source, { venue }) {
	const opened = timeOf(null);
	opened.classList.add("num");
	const star = followButton(source, venue.venue_id);
	const line = h("li", star.node, h("a.row", { href: path("/venue", { source, id: venue.venue_id }) }, h("b"), h("span.soft")), h("span.when.num"), h("span.sizes.soft"), h("span.opened", opened));
	line.update = ({ date, venue: one, slot }, followed) => {
		text(line.querySelector("b"), one.venue_name ?? one.venue_id);
		text(line.querySelector(".soft"), one.neighborhood ?? "");
		text(line.querySelector(".when"), `${day(date)} ${slot.start.slice(11, 16)}`);
		text(line.querySelector(".sizes"), slot.party_sizes?.length ? `for ${slot.party_sizes.join(", ")}` : "");
		opened.set(time(slot.opened_at), "age");
		attr(opened, "title", `first seen ${slot.first_seen}, last seen ${slot.last_seen ?? "?"}; ${slot.evidence === "empty_prev" ? "the bucket was empty before" : "the venue had nothing before"}`);
		star.update(followed.has(one.venue_id));
	};
	return line;
}

// The venues that are followed: a setting of the source.
async function followedOf(source, signal) {
	const known = await get("/v1/settings/known", signal);
	return new Set(known.find(({ key }) => key === `source.${source}.follow`)?.value ?? []);
}

export function followButton(source, venue) {
	let is = false;
	const node = h("button.star", { click: async () => {
		try {
			const { follow } = await change(is ? "DELETE" : "PUT", path("/v1/tables", source, "venues", venue, "follow"));
			update(follow.includes(venue));
		} catch (error) {
			attr(node, "title", error.message);
			say(error.message);
		}
	} });
	const update = (followed) => {
		is = followed;
		text(node, is ? "★" : "☆");
		attr(node, "aria-pressed", String(is));
		attr(node, "aria-label", is ? "Stop following" : "Follow");
	};
	update(false);
	return { node, update };
}
