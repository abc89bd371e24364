import { attr, change, choice, clock, cls, day, family, filterBox, get, h, keyed, listed, num, panel, path, plural, put, say, scroll, slotTime, sourceChoice, span, text, time, timeOf, unconfigured, watch } from "../kit.js";

export const title = "Tables";

export function mount(root, page) {
	let answer = null;
	let source = null;
	let offered = new Set(); // The party sizes that its tables were seen for.
	const again = () => lists.again();
	const shows = choice(page, "count", () => [["open", "Open tables"], ["drops", "Openings in 24 h"]], "open", "What the numbers count", () => answer && render());
	const heat = heatPanel(page, again);
	const sizes = choice(page, "party", () => [["any", "Any size"], ...[...offered].sort((a, b) => a - b).map((size) => [size])], "any", "Party size", again);
	const follow = choice(page, "venues", () => [["all", "All venues"], ["followed", "Followed"]], "all", "Which venues", again);
	const box = filterBox(page, "Filter by venue or neighbourhood", () => answer && render());
	const pick = sourceChoice(page, again);
	const more = (isLoaded) => (isLoaded ? answer && render() : again());
	const fresh = slotList("Just opened", "Nothing opened in the last half hour. Drops appear here within seconds of being seen.", more);
	const open = slotList("Still open", "No drop is still open.", more);
	const dateChip = h("button.chip", { hidden: true, click: () => { page.set("date", null, true); again(); } });
	page.put(panel("Tables by day and time", [shows.node, h("span.grow"), pick.node, dateChip], heat.node),
		h("div.bar", h("h2.unseen", "Drops"), sizes.node, follow.node, box.node), h("div.halves", fresh.node, open.node));

	function render() {
		const date = page.get("date");
		dateChip.hidden = !date;
		if (date) text(dateChip, `${day(date)} ✕`);
		heat.update(answer.buckets, date, shows.value);
		const [just, still] = [answer.fresh, answer.open].map(({ items }) => flat(items));
		for (const { slot } of [...just, ...still]) slot.party_sizes.forEach((size) => offered.add(String(size)));
		sizes.render();
		fresh.update(answer, answer.fresh, just.sort((a, b) => time(b.slot.opened_at) - time(a.slot.opened_at)), box);
		open.update(answer, answer.open, still.sort((a, b) => a.slot.start.localeCompare(b.slot.start) || (a.venue.venue_name ?? "").localeCompare(b.venue.venue_name ?? "")), box);
	}

	const lists = watch(page, {
		load: async (signal) => {
			const name = pick.of(await family("tables", signal));
			if (!name) return null;
			if (name !== source) offered = new Set();
			source = name;
			const followed = await followedOf(source, signal);
			const only = page.get("venues") === "followed" ? [...followed, "nobody"].join() : null;
			const size = page.get("party");
			if (size) offered.add(size);
			const filter = { date: page.get("date"), party_size: size, follow: only };
			const ask = (what, { parts }) => listed(path("/v1/tables", source, what, filter), signal, parts);
			const [buckets, just, still] = await Promise.all([get(path("/v1/tables", source, "buckets"), signal), ask("just-opened", fresh), ask("still-open", open)]);
			// The day and the time are the end of a bucket's name; a market may stand before them.
			const placed = buckets.map((bucket) => {
				const [, market, date, time_] = bucket.bucket_id.match(/^(.*?)[_/]?(\d{4}-\d\d-\d\d)_(\d\d:\d\d)$/) ?? [];
				return { ...bucket, market, date, time: time_ };
			});
			return { source, followed, buckets: placed.filter((bucket) => bucket.date), fresh: just, open: still };
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

const flat = (days) => days.flatMap((one) => one.venues.flatMap((venue) => venue.slots.map((slot) => ({ venue, slot }))));

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
		const cells = new Map([...Map.groupBy(buckets, (bucket) => `${bucket.date} ${bucket.time}`)].map(([key, some]) => [key, together(some, count)]));
		const most = Math.max(1, ...[...cells.values()].map(count));
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
				else paint(cell.firstChild, cells.get(`${one} ${key}`), count, most, one === date);
			}
			for (const [one, cell] of line.box) if (!dates.includes(one)) (cell.remove(), line.box.delete(one));
		});
	};
	return { node, update };
}

// Several markets may have a bucket at the same time of the same day: their sum, with each of them in words.
function together(some, count) {
	const sums = ["open_slots", "venues_open", "drops_24h", "drops_open"].map((name) => [name, some.reduce((total, bucket) => total + (bucket[name] ?? 0), 0)]);
	const [first] = some;
	if (some.length === 1) return first;
	const scans = some.map((bucket) => bucket.last_scan);
	return { ...first, ...Object.fromEntries(sums), stale: some.some((bucket) => bucket.stale),
		last_scan: scans.includes(null) ? null : scans.sort()[0], each: some.map((bucket) => `${bucket.market || "one market"} ${num(count(bucket))}`).join(", ") };
}

function paint(button, bucket, count, most, chosen) {
	const n = bucket ? count(bucket) : 0;
	text(button, bucket ? (bucket.stale ? `◌ ${num(n)}` : num(n)) : "–", "quiet");
	button.style.setProperty("--heat", Math.ceil((n / most) * 5));
	cls(button, `num${bucket?.stale ? " stale" : ""}`);
	attr(button, "aria-pressed", String(chosen));
	const scanned = bucket?.last_scan ? `scanned ${span(clock.now() - time(bucket.last_scan))} ago` : "not scanned yet";
	const words = bucket ? `${plural(bucket.open_slots ?? 0, "open table")} at ${plural(bucket.venues_open ?? 0, "venue")}; ${plural(bucket.drops_24h, "opening")} in 24 hours, ${num(bucket.drops_open)} of all still open${bucket.each ? ` (${bucket.each})` : ""}` : "not watched";
	attr(button, "title", bucket ? `${words}; ${scanned}${bucket.stale ? "; stale" : ""}` : words);
	attr(button, "aria-label", bucket ? `${bucket.date} ${bucket.time}: ${words}${bucket.stale ? ", stale" : ""}` : words);
}

const LINES = 200;

// A list that says how much of it is shown; more of it is asked for on demand, part by part.
function slotList(words, emptiness, changed) {
	const list = h("ol.slots");
	const none = h("p.soft", emptiness);
	const count = h("span.soft.num");
	const self = { parts: 1 };
	let [most, here, beyond] = [LINES, 0, false];
	const more = h("button.quiet", { hidden: true, click: () => {
		const isLoaded = most < here;
		most += LINES;
		if (!isLoaded) self.parts += 1;
		changed(isLoaded);
	} }, "More");
	self.node = panel(words, [count], none, list, more);
	self.update = ({ source, followed }, { next }, slots, filter) => {
		const found = slots.filter(({ venue }) => filter.finds(`${venue.venue_name} ${venue.neighborhood}`));
		[here, beyond] = [found.length, Boolean(next)];
		const all = `${num(here)}${beyond ? " and more" : ""}`;
		none.hidden = here > 0;
		text(count, here > most ? `${num(most)} of ${all}` : here ? all : "");
		more.hidden = here <= most && !beyond;
		keyed(list, found.slice(0, most), ({ slot }) => slot.slot_id, (one) => slotLine(source, one), (line, one) => line.update(one, followed));
	};
	return self;
}

function slotLine(source, { venue }) {
	const opened = timeOf(null);
	const star = followButton(source, venue.venue_id);
	const line = h("li", star.node, h("a.row", { href: path("/venue", { source, id: venue.venue_id }) }, h("b"), h("span.soft")), h("span.when.num"), h("span.sizes.soft"), h("span.opened", opened));
	line.update = ({ venue: one, slot }, followed) => {
		text(line.querySelector("b"), one.venue_name ?? one.venue_id);
		text(line.querySelector(".soft"), one.neighborhood ?? "");
		text(line.querySelector(".when"), slotTime(slot.start));
		text(line.querySelector(".sizes"), slot.party_sizes?.length ? `for ${slot.party_sizes.join(", ")}` : "");
		opened.set(time(slot.opened_at));
		attr(opened, "title", `first seen ${slot.first_seen}, last seen ${slot.last_seen}; ${slot.evidence === "empty_prev" ? "the bucket was empty before" : "the venue had nothing before"}`);
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
