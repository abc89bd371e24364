import { atMost, attr, cause, change, choice, clock, col, facts, family, fig, full, get, h, keyed, label, labels, legend, listed, num, panel, path, plural, raceHref, ring, say, second, span, stretch, table, text, tick, time, timeOf, told, track, watch } from "../kit.js";

export const title = "Target";

const ROWS_MAX = 300;
const PARTS_MAX = 5; // A thousand polls or stretches each; the polls before are counted on the line.
const WINDOWS = { "15m": 15, "1h": 60, "6h": 360, "24h": 1440 };

export function mount(root, page) {
	const [source, key] = page.needs("target", "/", "key");
	if (!key) return;
	const base = ["/v1/targets", source, key];
	let data = null;
	const zoom = choice(page, "window", () => Object.keys(WINDOWS).map((name) => [name]), "1h", "How far back", () => lines.again());
	const line = track(page, true);
	const log = pollLog([...base, "polls"]);
	const why = whyPanel(source, key);
	const gaps = h("p.soft");
	const shown = h("small.soft");
	const polls = pollTable();
	const unseen = adherencePanel();
	page.put(why.node,
		panel("Polls on their schedule", [gaps, h("span.grow"), zoom.node], line.node, legend(page)),
		h("div.halves", panel("Notable polls", [h("small.soft", "changed, late, missed or failed"), shown], polls.node),
			panel("Was it polled when it was due?", unseen.node)),
		told(page, "Told", { source, target: key }));

	const draw = (now) => {
		if (!data) return;
		const back = WINDOWS[zoom.value] * 60_000;
		line.update({ from: now - back, to: now + back / 6, now, due: time(data.target.due), runs: data.runs, polls: data.polls, known: data.known });
	};
	const mine = (what) => what.source === source && what.target === key;
	const lines = watch(page, {
		load: async (signal) => {
			const from = new Date(clock.now() - WINDOWS[zoom.value] * 60_000).toISOString();
			const [target, notable, adherence, why, runs, racing] = await Promise.all([
				get(path(...base), signal), log(from, signal), get(path("/v1/adherence", source, key, { from }), signal),
				get(path(...base, "why"), signal), listed(path(...base, "runs", { from }), signal, PARTS_MAX), family("racing", signal), labels(signal),
			]);
			return { target, ...notable, adherence, silence: why.events ?? [], runs: runs.items.map(stretch).sort((one, other) => one.from - other.from), races: racing.some(({ name }) => name === source) };
		},
		show: (answer) => {
			data = answer;
			page.title(label(source, key));
			why.update(data);
			polls.update(data.polls.slice(0, ROWS_MAX));
			text(shown, data.polls.length > ROWS_MAX ? `the newest ${ROWS_MAX} of ${num(data.polls.length)} in the window` : "");
			unseen.update(data.adherence);
			text(gaps, `${plural(data.adherence.polls, "poll")}, ${num(data.adherence.late)} late, ${num(data.adherence.missed)} missed`);
			draw(clock.now());
		},
		event: mine,
		poll: mine,
		targets: () => true,
	});
	page.end(tick(draw, 250));
}

// The notable polls of a window, the newest first, and since when they are all there. What is known already is not asked
// for again: a target may have thousands of them in a day, and another one every few seconds.
function pollLog(base) {
	let [kept, begun, whole] = [[], Infinity, false];
	return async (from, signal) => {
		const begin = time(from);
		if (begin < begun) [kept, begun, whole] = [[], begin, false];
		const newest = time(kept[0]?.sent) ?? -Infinity;
		const isNew = (poll) => time(poll.sent) > newest;
		const found = [];
		let next = path(...base, { from, limit: kept.length ? 50 : 1000 });
		for (let part = 0; next && part < PARTS_MAX; part += 1) {
			const answer = await listed(next, signal);
			found.push(...answer.items.filter(isNew));
			next = answer.items.every(isNew) ? answer.next : null;
		}
		// What does not join on to what was known would leave a hole: the next time everything is asked for.
		if (next && kept.length) [kept, begun] = [[], Infinity];
		else if (!next && !kept.length) whole = true;
		if (next) whole = false;
		kept = [...found, ...kept].filter((poll) => time(poll.sent) >= begin);
		return { polls: kept, known: whole ? begun : (time(kept.at(-1)?.sent) ?? begin) };
	};
}

// The engine writes times as they are stored; people read their own clock.
const said = (words) => words.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (stamp) => second(Date.parse(stamp)));

function whyPanel(source, key) {
	const next = ring();
	const reason = h("p.reason");
	const list = h("dl.facts");
	const [polled, changed] = [timeOf(null), timeOf(null)];
	const silence = h("ul.reason", { "aria-label": "Why something was told, or nothing" });
	const error = h("p.state.failed", { hidden: true });
	const done = h("span.soft", { role: "status" });
	const race = h("a.button", { hidden: true, href: raceHref(source, key.slice(5)) }, "The race");
	const act = (name, words, hint) => h("button", { title: hint, click: async () => {
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
	const node = panel("Why", [h("span.soft", "next poll "), next, h("span.grow"), race,
		act("poll", "Poll now", "At once, and then as planned"), act("replan", "Plan anew", "Computes the due time again"), act("rebaseline", "New baseline", "Takes the next complete answer as it is, without telling anybody"), power, done],
	reason, error, silence, list);
	const update = ({ target, races, silence: words }) => {
		race.hidden = !races || !key.startsWith("race/");
		keyed(silence, words, (one) => one, (one) => h("li", `${one[0].toUpperCase()}${said(one.slice(1))}.`));
		on = target.enabled;
		text(power, on ? "Switch off" : "Switch on");
		next.set(time(target.due), target.interval_ms);
		text(reason, target.due ? `Due ${second(time(target.due))} (phase ${target.phase}, every ${span(target.interval_ms)}): ${said(target.reason)}.` : target.enabled ? `Not due any more (phase ${target.phase}): ${said(target.reason)}.` : "Switched off: it is not polled until somebody switches it on.");
		error.hidden = !target.last_error;
		text(error, `${plural(target.failures_in_a_row, "failed poll")} in a row: ${target.last_error ?? ""}`);
		polled.set(time(target.last_polled));
		changed.set(time(target.last_changed));
		facts(list, [["target", `${source}/${key}`], ["role", target.role], ["priority", target.priority], ["polls", num(target.polls)], ["records", num(target.records)], ["last poll", target.last_outcome ?? "none yet"],
			["polled", polled], ["changed", changed], ["starts", target.start ? full(time(target.start)) : "–"], ["held by", target.owner ?? "nobody"]]);
	};
	return { node, update };
}

function pollTable() {
	return table({
		caption: "Notable polls, the newest first", key: (poll) => poll.poll_no, none: "Every poll was on time and found nothing new.",
		state: (poll) => (poll.outcome === "failed" ? "failing" : ""),
		columns: [
			fig("Sent", (poll) => second(time(poll.sent))), col("Phase", (poll) => poll.phase),
			col("Ended", (poll) => `${{ changed: "●", failed: "✕", baseline: "○", partial: "◐", doubted: "?", stale: "◌" }[poll.outcome] ?? "–"} ${poll.outcome}`),
			fig("Late", (poll) => num(poll.lateness_ms, poll.lateness_ms < 10 ? 1 : 0), { unit: "ms" }),
			col("Why", (poll) => [poll.late && `late: ${cause(poll.late)}`, poll.missed && `${poll.missed} missed: ${cause(poll.missed_cause)}`, poll.error_class && cause(poll.error_class), poll.detail].filter(Boolean).join("; ")),
			fig("Changes", (poll) => num(poll.changes)), fig("Events", (poll) => num(poll.events)), fig("Took", (poll) => num(time(poll.ended) - time(poll.sent)), { unit: "ms" }),
		],
	});
}

export function adherencePanel() {
	const says = h("p.reason");
	const grid = table({
		caption: "By phase", key: (phase) => phase.phase, sticky: false,
		columns: [
			col("Phase", (phase) => phase.phase), fig("Polls", (phase) => num(phase.polls)),
			fig("Late", (phase) => (phase.late ? `▲ ${num(phase.late)}` : "0")), fig("Missed", (phase) => (phase.missed ? `✕ ${num(phase.missed)}` : "0")),
			fig("Late p50", (phase) => atMost(phase.lateness_ms_p50), { title: "Half of the polls were sent no later after they were due" }),
			fig("Late p99", (phase) => atMost(phase.lateness_ms_p99), { title: "99 of 100 polls were sent no later after they were due" }),
			fig("Unseen at most", (phase) => span(phase.unseen_ms), { title: "The longest that anything can have gone unseen" }),
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
