// A venue: what is open there, and when it opened before.

import { all, get, path } from "../api.js";
import { h, panel, put, text } from "../dom.js";
import { day, full, num, time } from "../format.js";
import { columns } from "../parts/chart.js";
import { col, fig, table } from "../parts/table.js";
import { timeOf } from "../parts/time.js";
import { followButton } from "./tables.js";
import { nothing, watch } from "../watch.js";

export const title = "Venue";

export function mount(root, page) {
	const source = page.query.get("source");
	const id = page.query.get("id");
	if (!source || !id) return put(root, nothing("No venue is named.", h("a", { href: "/tables" }, "Choose one from the list.")));
	const star = followButton(source, id);
	const about = h("span.soft");
	const hours = columns(page, { words: "Drops by hour of the day" });
	const none = h("p.soft", "Nothing is open there now. Follow it to be told when something opens.");
	const never = h("p.soft", "Nothing has opened there since it is watched.");
	const sizes = (row) => (row.party_sizes ?? []).join(", ");
	const open = table({ caption: "Open now", key: (row) => row.slot_id, sticky: false, columns: [
		col("Table", (row) => `${day(row.start.slice(0, 10))} ${row.start.slice(11, 16)}`), { head: "For", cls: "num", value: sizes }, { head: "Opened", cls: "num", make: () => timeOf(null), set: (node, row) => node.set(time(row.opened_at), "age") } ] });
	const drops = table({ caption: "When something opened before", key: (row) => row.seq, columns: [
		fig("Opened", (row) => full(time(row.opened_at))), col("Table", (row) => `${day(row.start.slice(0, 10))} ${row.start.slice(11, 16)}`), { head: "For", cls: "num", value: sizes },
		col("Now", (row) => (row.open ? "● open" : "○ closed")) ] });
	const place = h("div");
	put(root, place, h("div.bar", star.node, about), h("div.halves", panel("Open now", none, open.node), panel("Drops by hour of the day", hours.node)),
		panel("History", never, drops.node));
	watch(page, {
		every: 10_000,
		place,
		load: async (signal) => {
			const [venues, days, told] = await Promise.all([get(path("/v1/tables", source, "venues"), signal), get(path("/v1/tables", source, "still-open", { follow: id }), signal), all(path("/v1/events", { source, type: "tables.drop", limit: 1000 }), signal, 5_000)]);
			const open_ = days.flatMap((one) => one.venues.flatMap((venue) => venue.slots));
			const still = new Set(open_.map((slot) => slot.seq));
			const drops_ = told.filter((event) => event.data?.record?.venue_id === id).map((event) => ({ ...event.data.record, seq: event.seq, opened_at: event.data.opened_at ?? event.at, open: still.has(event.seq) }));
			return { ...venues.find((venue) => venue.body.venue_id === id)?.body, open: open_, drops: drops_ };
		},
		show: (venue) => {
			page.title(venue.name ?? id);
			text(about, [venue.neighborhood, venue.price_range ? "$".repeat(venue.price_range) : null, venue.rating ? `${num(venue.rating, 1)} ★` : null].filter(Boolean).join(" · "));
			none.hidden = venue.open.length > 0;
			open.node.hidden = !venue.open.length;
			open.update(venue.open);
			never.hidden = venue.drops.length > 0;
			drops.node.hidden = !venue.drops.length;
			drops.update(venue.drops);
			const counts = Array(24).fill(0);
			venue.drops.forEach((drop) => (counts[new Date(time(drop.opened_at)).getHours()] += 1));
			hours.update(counts.map((count, hour) => ({ label: String(hour), count })));
		},
		on: (event) => event.type === "tables.drop" && event.data?.record?.venue_id === id,
	});
}
