// Health: was everything polled when it was due, what failed and why, what is stored.

import { all, get, getText, metrics, path } from "../api.js";
import { attr, h, keyed, put, text } from "../dom.js";
import { bytes, full, num, plural, second, span, time, word } from "../format.js";
import { clock } from "../live.js";
import { columns } from "../parts/chart.js";
import { label, labels, sourcesOf, targetHref } from "../parts/names.js";
import { choice, col, fig, table } from "../parts/table.js";
import { timeOf } from "../parts/time.js";
import { legend, stretch, track } from "../parts/track.js";
import { adherencePanel } from "./target.js";
import { watch } from "../watch.js";

export const title = "Health";

const WINDOWS = { "1h": 60, "6h": 360, "24h": 1440 };

export function mount(root, page) {
	const place = h("div");
	const store = h("section.panel", { "aria-label": "The process and its store" });
	const sources = h("div.stack");
	const zoom = choice(page, "window", () => Object.keys(WINDOWS).map((name) => [name, name]), "24h", "Which window", () => again.again());
	const errors = errorPanel();
	put(root, place, store, h("div.bar", h("span.grow"), h("span.soft", "adherence of the last "), zoom.node), sources, errors.node);
	watch(page, { every: 5_000, place, load: (signal) => get("/v1/health", signal), show: (health) => process(store, health) });
	const again = watch(page, {
		every: 5_000,
		place: sources,
		load: async (signal) => {
			const from = new Date(clock.now() - WINDOWS[zoom.value] * 60_000).toISOString();
			const found = await sourcesOf(signal, true);
			const [numbers, polls, ...accounts] = await Promise.all([getText("/metrics", signal).then(metrics), all(path("/v1/polls", { limit: 500 }), signal, 500),
				...found.map((source) => get(path("/v1/adherence", source.name, { from }), signal)), labels(signal)]);
			const worst = await Promise.all(found.map((source, n) => Promise.all(accounts[n].worst.slice(0, 6).map((one) => get(path("/v1/targets", source.name, one.key), signal).catch(() => null)))));
			return found.map((source, n) => ({ source, numbers, polls, account: accounts[n], worst: worst[n] }));
		},
		show: (found) => {
			keyed(sources, found, ({ source }) => source.name, ({ source }) => sourcePanel(page, source), (node, data) => node.update(data));
			if (found[0]) errors.update(found[0].polls);
		},
	});
}

function process(root, health) {
	const facts = [
		["state", health.ready ? "● ready" : `△ ${health.waiting_for}`], ["version", health.version], ["running since", full(time(health.started))], ["targets", num(health.store.targets)], ["records", num(health.store.records)],
		["events", num(health.store.events)], ["history rows", num(health.store.history)], ["on disk", bytes(health.store.bytes)], ["sequence", num(health.store.seq)],
		["held until due", num(health.held)], ["waiting to commit", num(health.committing)], ["streams open", num(health.streams)],
	];
	if (!root.firstChild) root.append(h("h2", "Process and store"), h("dl.facts"));
	keyed(root.querySelector("dl"), facts, ([name]) => name, ([name]) => h("div", h("dt", name), h("dd.num")), (node, [, value]) => text(node.lastChild, value));
}

function sourcePanel(page, source) {
	const account = adherencePanel();
	const lateness = columns(page, { words: "Polls by lateness" });
	const causes = columns(page, { words: "Failed polls by cause" });
	const noFailures = h("p.soft", "No poll has failed since the start.");
	const lines = new Map();
	const worst = table({
		caption: "Targets in which something can have gone unseen longest", key: (row) => row.key, href: (row) => targetHref(source.name, row.key),
		columns: [
			{ head: "Longest unseen", cls: "name", value: (row) => label(source.name, row.key) }, fig("At most", (row) => (row.unseen_ms == null ? "no promise" : span(row.unseen_ms))),
			fig("Polls", (row) => num(row.polls)), fig("Late", (row) => num(row.late)), fig("Missed", (row) => num(row.missed)),
			{ head: "Line", cls: "wide", make: (row) => {
				const line = track(page);
				lines.set(row.key, line);
				return line.node;
			}, set: () => {} },
		],
	});
	const node = h("section.panel", { "aria-label": `Source ${source.name}` }, h("h2", source.name, " ", h("small.soft", source.family)), account.node,
		h("div.halves", h("div", h("h3", "Polls by lateness since the start, ms"), lateness.node), h("div", h("h3", "Failed polls by cause"), noFailures, causes.node)),
		worst.node, legend());
	node.update = ({ numbers, account: found, worst: targets, polls }) => {
		account.update(found);
		lateness.update(buckets(numbers, source.name));
		const failures = (numbers.stakeout_poll_failures_total ?? []).filter(({ labels: l }) => l.source === source.name);
		noFailures.hidden = failures.length > 0;
		causes.node.hidden = !failures.length;
		causes.update(failures.map(({ labels: l, value }) => ({ label: word(l.class), count: value, tone: "bad" })));
		worst.update(found.worst.slice(0, 6));
		const now = clock.now();
		for (const target of targets.filter(Boolean)) {
			lines.get(target.key)?.update({ from: now - 20 * 60_000, to: now + 6 * 60_000, now, due: time(target.due), runs: target.run ? [stretch(target.run)] : [], polls: polls.filter((poll) => poll.source === source.name && poll.target === target.key) });
		}
	};
	return node;
}

/** Prometheus' buckets add up; people want each. */
function buckets(numbers, source) {
	const found = (numbers.stakeout_poll_lateness_seconds_bucket ?? []).filter(({ labels: l }) => l.source === source);
	let before = 0;
	return found.map(({ labels: l, value }) => {
		const ms = l.le === "+Inf" ? Infinity : Number(l.le) * 1000;
		const bar = { label: ms === Infinity ? "more" : ms < 1000 ? `≤${ms}` : `≤${ms / 1000} s`, count: value - before, tone: ms > 5_000 ? "bad" : ms > 100 ? "warn" : "good" };
		before = value;
		return bar;
	});
}

function errorPanel() {
	const none = h("p.soft", "No failed poll among the newest 500 notable ones.");
	const grid = table({
		caption: "Failed polls, the newest first", key: (poll) => `${poll.source}/${poll.target}/${poll.poll_no}`, href: (poll) => targetHref(poll.source, poll.target), state: () => "failing",
		columns: [
			{ head: "Target", cls: "name", value: (poll) => (poll.target ? label(poll.source, poll.target) : "gone") }, { head: "When", cls: "num", make: () => timeOf(null), set: (node, poll) => node.set(time(poll.sent), "age") },
			fig("Sent", (poll) => second(time(poll.sent))), col("Cause", (poll) => `✕ ${word(poll.error_class)}`), col("In words", (poll) => poll.detail ?? ""),
		],
	});
	const count = h("small.soft");
	const node = h("section.panel", { "aria-label": "Failed polls" }, h("h2", "Failed polls ", count), none, grid.node);
	return { node, update: (polls) => {
		const failed = polls.filter((poll) => poll.outcome === "failed");
		none.hidden = failed.length > 0;
		attr(grid.node, "hidden", failed.length ? null : "");
		text(count, failed.length ? plural(failed.length, "poll") : "");
		grid.update(failed.slice(0, 50));
	} };
}
