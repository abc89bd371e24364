// A rule as a form, and in a few words.

import { h, put, text } from "../dom.js";
import { parsed } from "../format.js";

const BANDS = [5, 10, 15, 20, 25, 50];
// What each condition asks for: name, words, and what it looks like or may be.
const CONDITIONS = {
	event: ["An event is told", ["type", "Type", "racing.race.final"], ["where", "Where (JSON)", '{"late": true}', "json"]],
	odds: ["A price moves", ["direction", "Direction", ["shortened", "lengthened"]], ["percent", "By at least %", "20", "number"], ["within", "Within", "10m"]],
	money: ["Money comes in", ["points", "At least points", "10", "number"], ["within", "Within", "5m"]],
	indicator: ["A band is reached", ["of", "Of", ["odds", "money"]], ["percent", "Band from %", BANDS, "number"]],
	start: ["A race is to start", ["before", "So long before", "1m"]],
	drop: ["A table opens", ["venues", "Venues", "Carbone, 60029", "list"], ["followed", "Only followed ones", "", "checkbox"], ["from_date", "From date", "", "date"], ["to_date", "To date", "", "date"],
		["from_time", "From time", "", "time"], ["to_time", "To time", "", "time"], ["party", "Party sizes", "2, 4", "numbers"]],
	pilot: ["A pilot flies soon", ["pilot", "Pilot", "Alex"], ["within", "Races away at most", "2", "number"]],
	unhealthy: ["A source fails", ["failures", "Failures in a row", "3", "number"]],
	missed: ["Polls are missed", ["polls", "At least so many", "1", "number"]],
};

// How long each is told again.
const LASTS = {
	event: "until it is read", odds: "while it stands", money: "while it stands", indicator: "while it stands", start: "until the start",
	drop: "while it is open", pilot: "until they fly", unhealthy: "while it fails", missed: "while they are missed",
};

export function conditions(when) {
	const [words, ...fields] = CONDITIONS[when.on] ?? [when.on];
	const said = fields.filter(([name]) => when[name] != null && when[name] !== false && String(when[name]) !== "").map(([name, label]) => {
		const value = when[name];
		return `${label.toLowerCase()} ${typeof value === "object" && !Array.isArray(value) ? JSON.stringify(value) : [value].flat().join(", ")}`;
	});
	return [words, ...said].join(", ");
}

function control([name, label, hint, type = "text"]) {
	const options = Array.isArray(hint) ? hint : null;
	const plainType = ["number", "date", "time", "checkbox"].includes(type) ? type : "text";
	const input = options
		? h("select", ...options.map((one) => h("option", { value: one }, String(one))))
		: h("input", { type: plainType, step: plainType === "number" ? "any" : null, placeholder: hint || null, autocomplete: "off" });
	input.name = name;
	const split = () => input.value.split(",").map((part) => part.trim()).filter(Boolean);
	return {
		name, input, node: h("label", h("span", label), input),
		get value() {
			if (type === "checkbox") return input.checked || undefined;
			if (!input.value.trim()) return undefined;
			if (type === "number") return Number(input.value);
			if (type === "list") return split();
			if (type === "numbers") return split().map(Number);
			if (type !== "json") return input.value.trim();
			return parsed(input.value);
		},
		set value(value) {
			if (type === "checkbox") input.checked = Boolean(value);
			else if (value == null) input.value = options ? options[0] : "";
			else input.value = type === "json" ? JSON.stringify(value) : [value].flat().join(", ");
		},
	};
}

// What is not said is left out.
const said = (controls) => Object.fromEntries(controls.map(({ name, value }) => [name, value]).filter(([, value]) => value !== undefined));

export function form({ save, test }) {
	const on = h("select", ...Object.entries(CONDITIONS).map(([value, [words]]) => h("option", { value }, words)));
	on.name = "on";
	const name = control(["name", "Name", "steamer"]);
	const source = h("select");
	source.name = "source";
	const repeat = control(["repeat", "Again every", "1h"]);
	const common = [control(["severity", "Severity", ["info", "warning", "critical"]]), control(["user", "For", "everybody"]), control(["quiet", "Quiet after it rang", "10m"]), repeat];
	const hours = [control(["from", "Hours from", "", "time"]), control(["to", "Hours to", "", "time"]), control(["zone", "In the zone", Intl.DateTimeFormat().resolvedOptions().timeZone])];
	const enabled = control(["enabled", "Switched on", "", "checkbox"]);
	const place = h("div.fields");
	const boxes = h("span.bar");
	let fields = [];

	const chosen = () => {
		fields = CONDITIONS[on.value].slice(1).map(control);
		put(place, ...fields.map((field) => field.node));
		text(repeat.node.firstChild, `Again every, ${LASTS[on.value]}`);
	};
	const read = () => {
		const within = said(hours);
		if (within.from || within.to) within.zone ??= hours[2].input.placeholder;
		const sinks = [...boxes.querySelectorAll("input:checked")].map((box) => box.value);
		return {
			when: { on: on.value, ...said(fields) }, ...said(common), source: source.value || undefined,
			sinks: sinks.length ? sinks : undefined, hours: within.from || within.to ? within : undefined, enabled: enabled.value ? undefined : false,
		};
	};
	const fill = (one) => {
		const { rule } = one;
		name.value = one.name;
		on.value = rule.when.on;
		chosen();
		fields.forEach((field) => (field.value = rule.when[field.name]));
		common.forEach((field) => (field.value = rule[field.name]));
		hours.forEach((field) => (field.value = rule.hours?.[field.name]));
		source.value = rule.source ?? "";
		enabled.value = rule.enabled !== false;
		boxes.querySelectorAll("input").forEach((box) => (box.checked = (rule.sinks ?? []).includes(box.value)));
	};
	const clear = () => fill({ name: "", rule: { when: { on: on.value } } });
	on.addEventListener("change", chosen);
	const node = h("form.rule", { "aria-label": "A rule", submit: (event) => {
		event.preventDefault();
		save(name.value ?? "", read());
	} }, h("div.fields", name.node, h("label", h("span", "Rings when"), on)), place,
	h("div.fields", ...common.map((field) => field.node), h("label", h("span", "Source"), source), ...hours.map((field) => field.node), enabled.node),
	h("div.bar", h("span.soft", "Sent to"), boxes, h("span.grow"), h("button", { type: "button", click: () => test(read()) }, "Try it on the last 24 h"), h("button", { type: "submit" }, "Save")));
	chosen();
	clear();
	return {
		node, clear,
		fill: (one) => {
			fill(one);
			name.input.focus();
		},
		// Only what is new is added: what somebody has chosen stays.
		choices: (sources, sinks) => {
			const known = new Set([...source.options].map((option) => option.value));
			source.append(...["", ...sources].filter((one) => !known.has(one)).map((one) => h("option", { value: one }, one || "all")));
			const there = new Set([...boxes.querySelectorAll("input")].map((box) => box.value));
			boxes.append(...sinks.filter((one) => !there.has(one)).map((one) => h("label", h("input", { type: "checkbox", value: one }), h("span", ` ${one}`))));
		},
	};
}
