// A target: why it is due when it is, its polls on their schedule, and how long anything can have gone unseen.

import { can, change, get, path } from "../api.js";
import { attr, h, keyed, panel, put, say, text } from "../dom.js";
import { full, num, plural, second, span, time, word } from "../format.js";
import { clock, live, tick } from "../live.js";
import { told } from "../parts/feed.js";
import { label, labels, raceHref } from "../parts/names.js";
import { ring } from "../parts/ring.js";
import { choice, col, fig, table } from "../parts/table.js";
import { timeOf } from "../parts/time.js";
import { legend, stretch, track } from "../parts/track.js";
import { nothing, watch } from "../watch.js";

export const title = "Target";

const WINDOWS = { "15m": 15, "1h": 60, "6h": 360, "24h": 1440 };

export function mount(root, page) {
	const source = page.query.get("source");
	const key = page.query.get("key");
	if (!source || !key) return put(root, nothing("No target is named.", h("a", { href: "/" }, "Choose one from the board.")));
	const base = ["/v1/targets", source, key];
	let data = null;
	const zoom = choice(page, "window", () => Object.keys(WINDOWS).map((name) => [name, name]), "1h", "How far back", () => lines.again());
	const line = track(page, true);
	const place = h("div");
	const why = whyPanel(source, key);
	const gaps = h("p.soft");
	const polls = pollTable();
	const unseen = adherencePanel();
	put(root, place, why.node,
		h("section.panel", { "aria-label": "Polls on their schedule" }, h("div.bar", h("h2", "Polls"), gaps, h("span.grow"), zoom.node), line.node, legend()),
		h("div.halves", h("section.panel", { "aria-label": "Notable polls" }, h("h2", "Notable polls ", h("small.soft", "changed, late, missed or failed")), polls.none, polls.node),
			panel("Was it polled when it was due?", unseen.node)),
		told(page, "Told", { source, target: key }));

	const draw = (now) => {
		if (!data) return;
		const back = WINDOWS[zoom.value] * 60_000;
		line.update({ from: now - back, to: now + back / 6, now, due: time(data.target.due), runs: data.runs, polls: data.polls });
	};
	const mine = (what) => what.source === source && what.target === key;
	const lines = watch(page, {
		every: live.polls ? 10_000 : 2_000,
		place,
		load: async (signal) => {
			const from = new Date(clock.now() - WINDOWS[zoom.value] * 60_000).toISOString();
			const [target, notable, adherence, why, runs] = await Promise.all([
				get(path(...base), signal), get(path(...base, "polls", { limit: 300 }), signal), get(path("/v1/adherence", source, key, { from }), signal),
				can("/v1/targets/{source}/{key}/why").then((known) => known && get(path(...base, "why"), signal)),
				can("/v1/targets/{source}/{key}/runs").then((known) => known && get(path(...base, "runs", { from }), signal)),
				labels(signal),
			]);
			return { target, polls: notable, adherence, silence: why?.events ?? [], runs: runs ? (runs.items ?? runs) : null };
		},
		show: (answer) => {
			const told = answer.runs ?? [];
			const going = answer.target.run;
			const known = going && !told.some((run) => run.from === going.from) ? [...told, going] : told;
			data = { ...answer, runs: known.map(stretch), partial: !answer.runs };
			page.title(label(source, key));
			why.update(data);
			polls.update(data.polls);
			unseen.update(data.adherence);
			text(gaps, counts(data));
			draw(clock.now());
		},
		on: mine,
		poll: mine,
	});
	let drawn = 0;
	page.end(tick((now) => {
		if (performance.now() - drawn < 250) return;
		drawn = performance.now();
		draw(now);
	}));
}

/** The engine writes times as they are stored; people read their own clock. */
const said = (words) => words.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (stamp) => second(Date.parse(stamp)));

function counts({ adherence, partial }) {
	const words = `${plural(adherence.polls, "poll")}, ${num(adherence.late)} late, ${num(adherence.missed)} missed`;
	return partial ? `${words}; only the stretch that goes on is drawn` : words;
}

function whyPanel(source, key) {
	const next = ring();
	const reason = h("p.reason");
	const facts = h("dl.facts");
	const silence = h("ul.reason", { "aria-label": "Why something was told, or nothing" });
	const error = h("p.state.failed", { hidden: true });
	const done = h("span.soft", { role: "status" });
	const race = key.startsWith("race/") ? h("a.button", { href: raceHref(source, key.slice(5)) }, "The race") : null;
	const act = (name, words, hint) => h("button", { type: "button", title: hint, click: async () => {
		text(done, "…");
		try {
			await change("POST", path("/v1/targets", source, key, name === "switch" ? (on ? "disable" : "enable") : name));
			text(done, `${words}: done`);
			say(`${words}: done`);
		} catch (problem) {
			text(done, `${words}: ${problem.message}`);
		}
	} }, words);
	let on = true;
	const power = act("switch", "Switch off", "It stays off until it is switched on again");
	const node = h("section.panel", { "aria-label": "Why" }, h("div.bar", h("h2", "Why"), h("span.soft", "next poll "), next, h("span.grow"), race,
		act("poll", "Poll now", "At once, and then as planned"), act("replan", "Plan anew", "Computes the due time again"), act("rebaseline", "New baseline", "Takes the next complete answer as it is, without telling anybody"), power, done),
	reason, error, silence, facts);
	const update = ({ target, silence: words }) => {
		keyed(silence, words, (one) => one, (one) => h("li", `${one[0].toUpperCase()}${said(one.slice(1))}.`));
		on = target.enabled;
		text(power, on ? "Switch off" : "Switch on");
		next.set(time(target.due), target.interval_ms);
		text(reason, target.due ? `Due ${second(time(target.due))} (phase ${target.phase}, every ${span(target.interval_ms)}): ${said(target.reason)}.` : target.enabled ? `Not due any more (phase ${target.phase}): ${said(target.reason)}.` : "Switched off: it is not polled until somebody switches it on.");
		error.hidden = !target.last_error;
		text(error, `${plural(target.failures_in_a_row, "failed poll")} in a row: ${target.last_error ?? ""}`);
		const pairs = [["target", `${source}/${key}`], ["role", target.role], ["priority", target.priority], ["polls", num(target.polls)], ["records", num(target.records)], ["last poll", target.last_outcome ?? "none yet"],
			["polled", timeOf(time(target.last_polled))], ["changed", timeOf(time(target.last_changed))], ["starts", target.start ? full(time(target.start)) : "–"], ["held by", target.owner ?? "nobody"]];
		put(facts, ...pairs.map(([name, value]) => h("div", h("dt", name), h("dd.num", value))));
	};
	return { node, update };
}

function pollTable() {
	const none = h("p.soft", { hidden: true }, "Every poll was on time and found nothing new.");
	const grid = table({
		caption: "Notable polls, the newest first", key: (poll) => poll.poll_no,
		state: (poll) => (poll.outcome === "failed" ? "failing" : ""),
		columns: [
			fig("Sent", (poll) => second(time(poll.sent))), col("Phase", (poll) => poll.phase),
			col("Ended", (poll) => `${{ changed: "●", failed: "✕", baseline: "○", partial: "◐", doubted: "?", stale: "◌" }[poll.outcome] ?? "–"} ${poll.outcome}`),
			{ head: "Late", unit: "ms", cls: "num", value: (poll) => num(poll.lateness_ms, poll.lateness_ms < 10 ? 1 : 0) },
			col("Why", (poll) => [poll.late && `late: ${word(poll.late)}`, poll.missed && `${poll.missed} missed: ${word(poll.missed_cause)}`, poll.error_class && word(poll.error_class), poll.detail].filter(Boolean).join("; ")),
			fig("Changes", (poll) => num(poll.changes)), fig("Events", (poll) => num(poll.events)),
			{ head: "Took", unit: "ms", cls: "num", value: (poll) => num(time(poll.ended) - time(poll.sent)) },
		],
	});
	return { node: grid.node, none, update: (polls) => {
		none.hidden = polls.length > 0;
		grid.node.hidden = !polls.length;
		grid.update(polls);
	} };
}

const atMost = (ms) => (ms == null ? "–" : `≤ ${span(ms)}`);

/** Also used by Health, for a whole source. */
export function adherencePanel() {
	const says = h("p.reason");
	const grid = table({
		caption: "By phase", key: (phase) => phase.phase, sticky: false,
		columns: [
			col("Phase", (phase) => phase.phase), fig("Polls", (phase) => num(phase.polls)),
			fig("Late", (phase) => (phase.late ? `▲ ${num(phase.late)}` : "0")), fig("Missed", (phase) => (phase.missed ? `✕ ${num(phase.missed)}` : "0")),
			{ head: "p50", cls: "num", title: "Half of the polls were sent no later after they were due", value: (phase) => atMost(phase.lateness_ms_p50) },
			{ head: "p99", cls: "num", title: "99 of 100 polls were sent no later after they were due", value: (phase) => atMost(phase.lateness_ms_p99) },
			{ head: "Unseen at most", cls: "num", title: "The longest that anything can have gone unseen", value: (phase) => span(phase.unseen_ms) },
		],
	});
	const node = h("div", says, grid.node);
	return { node, update: (found) => {
		const words = found.worst.reduce((text_, { key }) => text_.replace(key, label(found.source, key)), found.says);
		text(says, `${words[0].toUpperCase()}${words.slice(1)}.`);
		attr(grid.node, "hidden", found.phases.length ? null : "");
		grid.update(found.phases);
	} };
}
