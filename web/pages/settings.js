import { Problem, attr, change, cls, get, h, keyed, panel, parsed, path, plain, say, saying, span, text, watch } from "../kit.js";

export const title = "Settings";

export function mount(root, page) {
	const list = h("div.stack");
	const again = () => settings.again();
	page.put(h("p.soft", "A setting stands over the configuration file until it is taken back. It is checked as you type and acts at once. Rules of alerts are on ", h("a", { href: "/alerts" }, "Alerts"), "."), list);
	const settings = watch(page, {
		every: 10_000,
		load: (signal) => Promise.all([get("/v1/settings/known", signal), get("/v1/settings", signal)]),
		show: ([known, set]) => {
			// What is set and not described is listed with the others, but for rules of alerts, which have a page of their own.
			const rest = Object.keys(set).filter((key) => !key.startsWith("alert.") && !known.some((one) => one.key === key)).map((key) => ({ key, value: set[key], unit: "", about: "", set: true }));
			const sources = Map.groupBy([...known, ...rest], ({ key }) => (key.startsWith("source.") ? key.split(".")[1] : "every source"));
			keyed(list, [...sources], ([name]) => name, ([name]) => sourcePanel(name, again), (node, [, rows]) => node.update(rows));
		},
	});
}

function sourcePanel(name, again) {
	const list = h("div");
	const node = panel(name, list);
	const prefix = `source.${name}.`;
	node.update = (rows) => keyed(list, rows, (one) => one.key, (one) => {
		const short = one.key.startsWith(prefix) ? one.key.slice(prefix.length) : one.key;
		const line = row(one.key, again, `${short} of ${name}`);
		return Object.assign(h("div.setting", h("label", { for: line.input.id }, h("b", short), h("small.soft", one.about)), h("span.num.current"), line.input, line.apply, line.reset, line.says), { line });
	}, (made, one) => {
		const inWords = one.unit === "ms" && one.value >= 1000 ? ` (${span(one.value)})` : "";
		text(made.querySelector(".current"), one.value == null ? "as configured" : `${plain(one.value)} ${one.unit}${inWords}`.trim(), true);
		made.line.reset.hidden = !one.set;
		cls(made, `setting${one.set ? " set" : ""}`);
	});
	return node;
}

let serial = 0;

// Input, buttons and what the server says of the value.
function row(key, again, label) {
	const says = saying();
	const input = h("input.num", { id: `setting-${(serial += 1)}`, "aria-label": label, placeholder: "new value", autocomplete: "off", size: 10 });
	const apply = h("button", { disabled: true, click: () => set(false) }, "Set");
	const reset = h("button.quiet", { hidden: true, title: "Back to the configuration file", click: () => unset() }, "Take back");
	let timer = 0;
	const show = (good, words) => {
		text(says, words ? `${good ? "✓" : "✕"} ${words}` : "");
		cls(says, `says ${good ? "good" : "bad"}`);
		attr(input, "aria-invalid", words && !good ? "true" : null);
	};
	async function set(check) {
		if (!input.value.trim()) return show(true, "");
		const sent = input.value;
		try {
			await change("PUT", path("/v1/settings", key), { value: parsed(input.value), check });
			if (sent !== input.value) return;
			apply.disabled = false;
			show(true, check ? "would be accepted" : "set, and in effect");
			if (!check) {
				say(`${key} is set`);
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
			await change("DELETE", path("/v1/settings", key));
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
