// Settings: what can be changed while it runs; a value is checked as it is typed and acts at once when it is set.

import { can, change, get, path, Problem } from "../api.js";
import { attr, cls, h, keyed, panel, put, say, text } from "../dom.js";
import { plain } from "../format.js";
import { sourcesOf } from "../parts/names.js";
import { watch } from "../watch.js";

export const title = "Settings";

/** Settings that every source has, and where their present value is found. */
const COMMON = [
	["requests_per_second", "Requests per second over all targets", "per s", (limits) => limits.requests_per_second],
	["burst", "Requests at once before the rate binds", "", (limits) => limits.burst],
	["concurrency", "Polls in flight at once", "", (limits) => limits.concurrency],
	["min_gap_ms", "Least time between two requests", "ms", (limits) => limits.min_gap_ms],
	["timeout_ms", "Longest a request may take", "ms", (limits) => limits.timeout_ms],
	["jitter_ms", "Most that is added to a due time", "ms", (limits) => limits.jitter_ms],
];
const OWN = {
	fpv: [
		["scheduler.raceActiveMs", "How often the current race is looked at", "ms"], ["scheduler.raceIdleMs", "How often each other race is looked at", "ms"],
		["scheduler.resultsMs", "How often results are looked at", "ms"], ["scheduler.fullIntervalMs", "How often event, pilots and rounds are looked at", "ms"],
		["scheduler.channelsMs", "How often channels are looked at", "ms"], ["scheduler.activeCheckMs", "How often the current race is determined without news", "ms"],
		["scheduler.workerIntervalMs", "Longest time between two looks for due targets", "ms"], ["scheduler.burst", "Most targets taken per look", ""], ["scheduler.enabled", "Whether anything is polled (true or false)", ""],
	],
};

export function mount(root, page) {
	const place = h("div");
	const list = h("div.stack");
	put(root, place, h("p.soft.lead", "A setting stands over the configuration file until it is taken back. It is checked as you type and acts at once, without a restart."), list, other());
	const again = watch(page, {
		every: 5_000,
		place,
		load: async (signal) => {
			const known = (await can("/v1/settings/known")) ? await get("/v1/settings/known", signal) : null;
			return [await sourcesOf(signal, true), await get("/v1/settings", signal), Array.isArray(known) ? known : null];
		},
		show: ([sources, set, known]) => {
			keyed(list, sources, (source) => source.name, (source) => sourcePanel(source, () => again.again()), (node, source) => node.update(source, set, known));
		},
	});

	/** A setting that is not listed, by its whole name. */
	function other() {
		const name = h("input", { placeholder: "source.NAME.SETTING", "aria-label": "Name of a setting", size: 34, autocomplete: "off", spellcheck: "false" });
		const line = row("", () => name.value.trim(), () => again.again(), "Value");
		return panel("Another setting", h("p.soft", "By its whole name, as in ", h("code", "stakeout settings set"), "."), h("div.setting", name, line.input, line.apply, line.reset, line.says));
	}
}

function sourcePanel(source, again) {
	const list = h("div.settings");
	const node = h("section.panel", { "aria-label": `Settings of ${source.name}` }, h("h2", source.name, " ", h("small.soft", source.family)), list);
	node.update = ({ name, family, limits }, set, known) => {
		const prefix = `source.${name}.`;
		const described = known?.filter((one) => one.key.startsWith(prefix)).map((one) => [one.key.slice(prefix.length), one.about, one.unit ?? "", () => one.value]);
		const rows = (described ?? [...COMMON, ...(OWN[family] ?? [])]).map(([short, about, unit, read]) => ({ key: prefix + short, short, about, unit, value: set[prefix + short] ?? read?.(limits), isSet: prefix + short in set }));
		for (const key of Object.keys(set)) if (key.startsWith(prefix) && !rows.some((one) => one.key === key)) rows.push({ key, short: key.slice(prefix.length), about: "", unit: "", value: set[key], isSet: true });
		keyed(list, rows, (one) => one.key, (one) => {
			const line = row(one.key, () => one.key, again, `${one.short} of ${name}`);
			const made = h("div.setting", h("label", { for: line.input.id }, h("b", one.short), h("small.soft", one.about)), h("span.num.current"), line.input, line.apply, line.reset, line.says);
			made.line = line;
			return made;
		}, (made, one) => {
			text(made.querySelector(".current"), `${one.value === undefined ? "as configured" : plain(one.value)}${one.unit && one.value !== undefined ? ` ${one.unit}` : ""}`, true);
			made.line.reset.hidden = !one.isSet;
			cls(made, `setting${one.isSet ? " set" : ""}`);
		});
	};
	return node;
}

let serial = 0;

/** Input, buttons and what the server says of the value. */
function row(initial, nameOf, again, label) {
	const says = h("span.says", { role: "status" });
	const input = h("input.num", { id: `setting-${(serial += 1)}`, "aria-label": label, placeholder: "new value", autocomplete: "off", size: 10 });
	const apply = h("button", { type: "button", disabled: true, click: () => set(false) }, "Set");
	const reset = h("button.quiet", { type: "button", hidden: initial !== "", title: "Back to the configuration file", click: () => unset() }, "Take back");
	let timer = 0;
	const show = (good, words) => {
		text(says, words ? `${good ? "✓" : "✕"} ${words}` : "");
		cls(says, `says ${good ? "good" : "bad"}`);
		attr(input, "aria-invalid", words && !good ? "true" : null);
	};
	const parsed = () => {
		try {
			return JSON.parse(input.value);
		} catch {
			return input.value;
		}
	};
	async function set(check) {
		if (!input.value.trim() || !nameOf()) return show(true, "");
		const sent = input.value;
		try {
			await change("PUT", path("/v1/settings", nameOf()), { value: parsed(), check });
			if (sent !== input.value) return;
			apply.disabled = false;
			show(true, check ? "would be accepted" : "set, and in effect");
			if (!check) {
				say(`${nameOf()} is set`);
				input.value = "";
				apply.disabled = true;
				again();
			}
		} catch (error) {
			if (!(error instanceof Problem)) throw error;
			if (sent !== input.value) return;
			apply.disabled = true;
			show(false, error.message);
		}
	}
	async function unset() {
		try {
			await change("DELETE", path("/v1/settings", nameOf()));
			show(true, "back to the configuration file");
			again();
		} catch (error) {
			show(false, error.message);
		}
	}
	input.addEventListener("input", () => {
		clearTimeout(timer);
		apply.disabled = true;
		timer = setTimeout(() => set(true), 250);
	});
	input.addEventListener("keydown", (event) => event.key === "Enter" && !apply.disabled && set(false));
	return { input, apply, reset, says };
}
