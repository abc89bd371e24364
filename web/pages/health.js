import { GLANCE_MS, all, bytes, cause, choice, clock, col, columns, facts, fig, full, get, h, keyed, label, labels, legend, lineOf, live, num, panel, path, plural, second, sourcesOf, span, table, targetHref, text, time, watch, when } from "../kit.js";
import { adherencePanel } from "./target.js";

export const title = "Health";

const POLLS = 500;
const WINDOWS = { "1h": 60, "6h": 360, "24h": 1440 };

export function mount(root, page) {
	const store = panel("Process and store", h("dl.facts"));
	const sources = h("div.stack");
	const zoom = choice(page, "window", () => Object.keys(WINDOWS).map((name) => [name]), "24h", "Which window", () => again.again());
	const errors = errorPanel();
	let health = null;
	page.put(store, h("div.bar", h("span.grow"), h("span.soft", "adherence of the last "), zoom.node), sources, errors.node);
	watch(page, { load: (signal) => get("/v1/health", signal), show: (found) => process(store, (health = found)) });
	page.end(live.on("pulse", (pulse) => {
		if (health) process(store, { ...health, ...pulse });
		for (const { name, vitals } of pulse.sources) sources.keyed?.get(name)?.beat(vitals);
	}));
	const again = watch(page, {
		place: sources,
		load: async (signal) => {
			const from = new Date(clock.now() - WINDOWS[zoom.value] * 60_000).toISOString();
			const found = await sourcesOf(signal, true);
			const lately = new Date(clock.now() - GLANCE_MS).toISOString();
			// Each source's own polls: a noisy one leaves nothing unknown about the others.
			const of = async (source) => {
				const [account, runs, { items: polls, next }] = await Promise.all([get(path("/v1/adherence", source.name, { from }), signal),
					all(path("/v1/runs", source.name, { from: lately, limit: 1000 }), signal, 5_000), get(path("/v1/polls", { source: source.name, limit: POLLS }), signal)]);
				return { source, polls, known: next ? time(polls.at(-1).ended) : -Infinity, account, runs };
			};
			const [each] = await Promise.all([Promise.all(found.map(of)), labels(signal)]);
			return each;
		},
		show: (found) => {
			keyed(sources, found, ({ source }) => source.name, ({ source }) => sourcePanel(page, source), (node, data) => node.update(data));
			errors.update(found.flatMap(({ polls }) => polls).sort((a, b) => time(b.sent) - time(a.sent)));
		},
		least: 3_000,
		poll: () => true,
	});
}

function process(root, health) {
	facts(root.querySelector("dl"), [
		["state", health.ready ? "● ready" : `△ ${health.waiting_for}`], ["version", health.version], ["running since", full(time(health.started))], ["targets", num(health.store.targets)], ["records", num(health.store.records)],
		["events", num(health.store.events)], ["history rows", num(health.store.history)], ["on disk", bytes(health.store.bytes)], ["sequence", num(health.store.seq)],
		["held until due", num(health.held)], ["waiting to commit", num(health.committing)], ["streams open", num(health.streams)],
	]);
}

function sourcePanel(page, source) {
	const account = adherencePanel();
	const lateness = columns(page, { words: "Polls by lateness" });
	const causes = columns(page, { words: "Failed polls by cause" });
	const noFailures = h("p.soft", "No poll has failed since the start.");
	const lines = new Map();
	const worst = table({
		caption: "Targets in which something can have gone unseen longest", key: (row) => row.key, href: (row) => (row.retired ? null : targetHref(source.name, row.key)),
		columns: [
			{ head: "Longest unseen", cls: "name", value: (row) => `${label(source.name, row.key)}${row.over ? " (over)" : ""}` }, fig("At most", (row) => (row.unseen_ms == null ? "no promise" : span(row.unseen_ms))),
			fig("Polls", (row) => num(row.polls)), fig("Late", (row) => num(row.late)), fig("Missed", (row) => num(row.missed)), lineOf(page, lines, "Line", (row) => row.key),
		],
	});
	const node = panel(source.name, [h("small.soft", source.family)], account.node,
		h("div.halves", h("div", h("h3", "Polls by lateness since the start, ms"), lateness.node), h("div", h("h3", "Failed polls by cause"), noFailures, causes.node)),
		worst.node, legend(page));
	node.beat = (vitals) => {
		lateness.update(vitals.lateness.map(({ le_ms: ms, polls }) => ({ label: ms == null ? "more" : ms < 1000 ? `≤${ms}` : `≤${ms / 1000} s`, count: polls, tone: ms == null || ms > 5_000 ? "bad" : ms > 100 ? "warn" : "good" })));
		const failures = Object.entries(vitals.failures);
		noFailures.hidden = failures.length > 0;
		causes.node.hidden = !failures.length;
		causes.update(failures.map(([name, count]) => ({ label: cause(name), count, tone: "bad" })));
	};
	node.update = ({ source: { vitals }, account: found, polls, runs, known }) => {
		account.update(found);
		node.beat(vitals);
		const longest = found.worst.slice(0, 6);
		worst.update(longest);
		const now = clock.now();
		for (const target of longest) {
			const mine = polls.filter((poll) => poll.target === target.key);
			const past = runs.filter(({ key, run }) => key === target.key && run.from !== target.run?.from).map(({ run }) => run);
			lines.get(target.key)?.glance(now, target, mine, past, known);
		}
	};
	return node;
}

function errorPanel() {
	const grid = table({
		caption: "Failed polls, the newest first", key: (poll) => [poll.source, poll.target, poll.poll_no, poll.sent].join("/"), href: (poll) => (poll.gone ? null : targetHref(poll.source, poll.target)), state: () => "failing",
		none: `No failed poll among the newest ${POLLS} notable ones of any source.`,
		columns: [
			{ head: "Target", cls: "name", value: (poll) => `${poll.target ? label(poll.source, poll.target) : "a target"}${poll.gone ? " (over)" : ""}` }, when("When", (poll) => poll.sent),
			fig("Sent", (poll) => second(time(poll.sent))), col("Cause", (poll) => `✕ ${cause(poll.error_class)}`), col("In words", (poll) => poll.detail ?? ""),
		],
	});
	const count = h("small.soft");
	return { node: panel("Failed polls", [count], grid.node), update: (polls) => {
		const failed = polls.filter((poll) => poll.outcome === "failed");
		text(count, failed.length ? plural(failed.length, "poll") : "");
		grid.update(failed.slice(0, 50));
	} };
}
