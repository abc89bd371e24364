import { Problem, change, cls, col, fig, get, h, keyed, panel, path, plain, put, say, saying, sign, sourcesOf, table, text, time, timeOf, watch } from "../kit.js";
import { conditions, form } from "../parts/rule.js";
import { SEVERITY, sound } from "../toasts.js";

export const title = "Alerts";

const isAlert = (event) => event.type === "alert.raised";

export function mount(root, page) {
	page.put(h("div.split", h("div.stack", notifications(page), rules(page)), sinks(page)));
}

// What was done, or why not, in the place where it was asked for.
async function act(says, work, done) {
	try {
		const answer = await work();
		text(says, done);
		cls(says, "says good");
		return answer ?? true;
	} catch (error) {
		if (!(error instanceof Problem)) throw error;
		text(says, `✕ ${error.message}`);
		cls(says, "says bad");
		return null;
	}
}

const button = (words, name, click) => h("button.quiet", { "aria-label": `${words} ${name}`, click }, words);

function notifications(page) {
	const list = h("ol.feed.rung", { "aria-label": "Notifications" });
	const none = h("p.soft", "Nothing has rung yet.");
	const says = saying();
	const place = h("div");
	let newest = 0;
	let most = 12;
	const more = h("button.quiet", { click: () => {
		most = Infinity;
		told.again();
	} });
	const read = (work) => act(says, work, "").then(() => {
		document.dispatchEvent(new CustomEvent("notifications-read"));
		told.again();
	});
	const all = h("button", { click: () => read(() => change("POST", path("/v1/notifications/read", { upto: newest }))) }, "Mark all read");
	const hear = h("button", { click: () => {
		sound.on = !sound.on;
		heard();
	} });
	const heard = () => {
		text(hear, `Sound ${sound.on ? "on" : "off"}`);
		hear.setAttribute("aria-pressed", String(sound.on));
	};
	heard();
	const told = watch(page, {
		every: 30_000, event: isAlert, place,
		load: (signal) => get("/v1/notifications?limit=100", signal),
		show: ({ items, unread }) => {
			newest = items[0]?.seq ?? 0;
			none.hidden = items.length > 0;
			all.disabled = !unread;
			// What nobody has read comes first.
			const rows = [...items.filter((one) => !one.read_at), ...items.filter((one) => one.read_at)];
			more.hidden = rows.length <= most;
			text(more, `Show all ${rows.length}`);
			keyed(list, rows.slice(0, most), (one) => one.seq, (one) => {
				const [shape, tone] = SEVERITY[one.severity] ?? SEVERITY.info;
				const mark = button("Mark read", one.title, () => read(() => change("POST", path("/v1/notifications", one.seq, "read"))));
				return h("li", { "data-seq": one.seq }, sign(shape, tone), timeOf(time(one.at)), h("span.type", one.alert),
					h("b", one.title), h("span.what", one.text), one.user ? h("span.soft", `for ${one.user}`) : null, mark);
			}, (node, one) => {
				cls(node, one.read_at ? "" : "you");
				node.querySelector("button").hidden = Boolean(one.read_at);
			});
		},
	});
	return panel("Notifications", [h("span.grow"), says, hear, all], place, none, list, more);
}

function rules(page) {
	const says = saying();
	const place = h("div");
	const tried = h("div");
	const again = () => listed.again();
	const edit = form({ save, test: (rule) => dry(() => change("POST", "/v1/alerts/test?since=24h", rule), "This rule") });

	async function save(name, rule) {
		const made = await act(says, () => change("PUT", path("/v1/alerts", name), rule), `${name} is in force`);
		if (!made) return;
		say(`${name} is in force`);
		edit.clear();
		again();
	}
	async function dry(work, name) {
		const done = await act(says, work, "");
		if (!done) return;
		const times = done.rings.length === 1 ? "once" : `${done.rings.length} times`;
		const quiet = done.kept_quiet ? `, and kept quiet ${done.kept_quiet} times` : "";
		put(tried, h("h3", { role: "status" }, `${name} would have rung ${times} in the last 24 h${quiet}${done.cut ? ". There was more than is looked at." : "."}${done.remarks.map((words) => ` ${words[0].toUpperCase()}${words.slice(1)}.`).join("")}`),
			h("ol.feed", { "aria-label": "What would have been sent" }, ...done.rings.slice(-50).reverse().map((ring) =>
				h("li", sign("·", "soft"), timeOf(time(ring.at)), h("b", ring.title), h("span.what", ring.text)))));
	}
	const grid = table({
		caption: "Rules in force", key: (one) => one.name, none: "No rule yet: make one below.",
		says: (one) => JSON.stringify(one),
		state: (one) => (one.rule.enabled === false ? "off" : ""),
		columns: [
			col("Alert", (one) => one.name), col("Rings", (one) => conditions(one.rule.when)), col("For", (one) => one.user ?? "everybody"),
			col("Severity", (one) => one.rule.severity), col("Sinks", (one) => (one.rule.sinks ?? []).join(", ") || "–"),
			col("From", (one) => (one.over_file ? "live, over the file" : one.origin)),
			{ head: "", make: () => h("span.bar"), set: (node, one) => put(node,
				button("Edit", one.name, () => edit.fill(one)), button("Try", one.name, () => dry(() => change("POST", path("/v1/alerts", one.name, "test", { since: "24h" })), one.name)),
				one.origin === "live" ? button("Remove", one.name, () => act(says, () => change("DELETE", path("/v1/alerts", one.name)), `${one.name} is removed`).then(again)) : null) },
		],
	});
	const listed = watch(page, {
		every: 15_000, place,
		load: (signal) => Promise.all([get("/v1/alerts", signal), get("/v1/sinks", signal), sourcesOf(signal)]),
		show: ([found, sinks, sources]) => {
			grid.update(found);
			edit.choices(sources.map((one) => one.name), sinks.filter((one) => one.kind).map((one) => one.name));
		},
	});
	return panel("Rules", place, grid.node, edit.node, says, tried);
}

function sinks(page) {
	const says = saying();
	const place = h("div");
	const dead = h("ol.feed", { "aria-label": "Deliveries that were given up" });
	const grid = table({
		caption: "Sinks", key: (one) => one.name, none: "No sink is configured: alerts ring here only.", sticky: false,
		state: (one) => (one.on ? (one.dead ? "failing" : "") : "off"),
		columns: [
			col("Sink", (one) => one.name), col("Kind", (one) => one.kind ?? "not configured"), col("State", (one) => (one.on ? "● on" : "○ off")),
			fig("Waiting", (one) => plain(one.waiting)), fig("Given up", (one) => plain(one.dead)),
		],
	});
	const choose = (what, { sink, event }, words) => act(says, () => change("POST", path("/v1/deliveries", what), { sink, event }), words).then(() => state.again());
	const state = watch(page, {
		every: 5_000, event: isAlert, place,
		load: (signal) => Promise.all([get("/v1/sinks", signal), get("/v1/deliveries/dead?limit=50", signal)]),
		show: ([found, given]) => {
			grid.update(found);
			keyed(dead, given, (one) => `${one.sink} ${one.event}`, (one) => h("li", sign("✕", "bad"), timeOf(time(one.at)),
				h("span.type", `${one.sink} · ${one.tries} tries`), h("b", `${one.type} ${one.subject}`), h("span.what", one.error),
				h("span", button("Retry", `event ${one.event} to ${one.sink}`, () => choose("retry", one, "to be tried again")), button("Drop", `event ${one.event} to ${one.sink}`, () => choose("drop", one, "dropped")))));
		},
	});
	return panel("Sinks", place, grid.node, says, dead);
}
