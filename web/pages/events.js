import { feed, filterBox, h, label, labels, put, sourcesOf, watch } from "../kit.js";

export const title = "Events";

export function mount(root, page) {
	const [source, type, target] = ["source", "type", "target"].map(page.get);
	const chosen = (name, value) => page.set(name, value || null);
	const pick = (name, words) => h("select", { "aria-label": words, change: (event) => chosen(name, event.target.value) }, h("option", { value: "" }, words));
	const sources = pick("source", "All sources");
	const types = pick("type", "All types");
	const box = filterBox(page, "Filter events by name", () => sift());
	const list = feed(page, {
		query: { source, type, target }, most: 100, wide: true,
		wants: (event) => (!source || event.source === source) && (!target || event.target === target) && (!type || (type.endsWith(".") ? event.type.startsWith(type) : event.type === type)),
	});
	const chip = target ? h("button.chip", { click: () => chosen("target", null) }, `${label(source, target)} ✕`) : null;
	page.put(h("section.panel", { "aria-label": "Events" }, h("div.bar", sources, types, chip, h("span.grow"), box.node), list.node));

	function sift() {
		for (const line of list.node.querySelectorAll("li")) line.hidden = !box.finds(line.textContent);
	}
	const watcher = new MutationObserver(() => page.get("q") && sift());
	watcher.observe(list.node, { childList: true, subtree: true });
	page.end(() => watcher.disconnect());

	watch(page, {
		every: 60_000,
		load: async (signal) => (await labels(signal), sourcesOf(signal)),
		show: (found) => {
			const options = (select, values, value) => put(select, select.firstChild, ...values.map((one) => h("option", { value: one, selected: one === value }, one)));
			options(sources, found.map((one) => one.name), source);
			const all = found.filter((one) => !source || one.name === source).flatMap((one) => one.event_types).concat("alert.raised");
			const families = [...new Set(all.map((one) => `${one.split(".").slice(0, 2).join(".")}.`))].filter((prefix) => all.filter((one) => one.startsWith(prefix)).length > 1);
			options(types, [...new Set([...families, ...all, ...(type ? [type] : [])])].sort(), type);
		},
	});
}
