import { clock, col, columns, fig, full, get, h, nothing, num, panel, path, plural, slotTime, span, table, text, time, watch, when } from "../kit.js";
import { followButton } from "./tables.js";

export const title = "Venue";

export function mount(root, page) {
	const [source, id] = page.needs("venue", "/tables", "id");
	if (!id) return;
	const star = followButton(source, id);
	const about = h("span.soft");
	const counts = h("span.soft");
	const hours = columns(page, { words: "Drops by hour of the day, on the venue's clock" });
	const seat = col("Table", (row) => slotTime(row.start));
	const sizes = fig("For", (row) => row.party_sizes.join(", "));
	const lasted = fig("For how long", (row) => (row.till ? span(time(row.till) - time(row.since)) : row.open ? `${span(clock.now() - time(row.since))} so far` : "–"));
	const state = col("Now", (row) => (row.open ? "● open" : row.till ? `○ ${row.state === "passed" ? "its time passed" : "taken"}` : "○ opened again since"));
	const open = table({ caption: "Open now", key: (row) => row.slot_id, sticky: false, none: "Nothing is open there now.", columns: [seat, sizes, when("First seen", (row) => row.since)] });
	const drops = table({ caption: "When something opened", key: (row) => row.seq, none: "Nothing has opened there since it is watched.", columns: [fig("Opened", (row) => full(time(row.since))), seat, sizes, lasted, state] });
	const slots = table({ caption: "Every table that was seen", key: (row) => row.slot_id, none: "No table was seen there yet.", columns: [seat, sizes, fig("First seen", (row) => full(time(row.since))), lasted, state] });
	page.put(h("div.bar", star.node, about, h("span.grow"), counts), h("div.halves", panel("Open now", open.node), panel("Drops by hour of the day there", hours.node)),
		h("div.halves", panel("Drops", drops.node), panel("Tables", slots.node)));
	watch(page, {
		load: (signal) => get(path("/v1/tables", source, "venues", id), signal),
		show: (found) => {
			const { body } = found.venue;
			page.title(body.name ?? id);
			star.update(found.followed);
			text(about, [body.neighborhood, body.price_range ? "$".repeat(body.price_range) : null, body.rating ? `${num(body.rating, 1)} of 5` : null, found.excluded ? "left out: nothing is told" : null].filter(Boolean).join(" · "));
			const seen = found.slots.map((slot) => ({ ...slot, since: slot.first_seen, till: slot.gone, open: !slot.gone }));
			const told = found.drops.map((drop) => ({ ...drop, since: drop.opened_at, till: drop.closed_at }));
			text(counts, `${plural(seen.length, "table")} seen, ${plural(told.length, "drop")}`);
			open.update(seen.filter((slot) => slot.open).reverse());
			drops.update(told);
			slots.update(seen);
			const byHour = Array(24).fill(0);
			told.filter((drop) => drop.opened_hour != null).forEach((drop) => (byHour[drop.opened_hour] += 1));
			hours.update(byHour.map((count, hour) => ({ label: String(hour), count })));
		},
		least: 1_000,
		event: (event) => event.type === "tables.drop" && event.data?.venue_id === id,
		poll: (poll) => poll.source === source && poll.changes > 0,
	});
}
