// A table whose rows stay where they are: cells are set one by one, and only when they say something else.

import { attr, cls, h, keyed, text } from "../dom.js";

/**
 * Columns are `{ head, unit, cls, value(row), tell }` for text, or `{ head, make(row), set(node, row) }` for anything
 * else. The first column is the row's header; `href(row)` makes it a link. `state(row)` is a class of the row;
 * where `says(row)` is what it was, the row is left alone.
 */
export function table({ caption, columns, key, href, state, says, sticky = true }) {
	const body = h("tbody");
	const head = (column) =>
		h("th", { scope: "col", class: column.cls, title: column.title }, column.head, column.unit ? h("small", ` ${column.unit}`) : null);
	const grid = h("table", h("caption.unseen", caption), h("thead", h("tr", ...columns.map(head))), body);
	const node = h(`div.scroll${sticky ? ".sticky" : ""}`, { tabindex: "0", role: "region", "aria-label": caption }, grid);

	const make = (row) => {
		const line = h("tr");
		line.cells_ = columns.map((column, n) => {
			const cell = h(n ? "td" : "th", { class: column.cls, scope: n ? null : "row" });
			const link = !n && href ? h("a.row", { href: href(row) }) : null;
			const inner = column.make ? column.make(row) : null;
			if (link) cell.append(link);
			if (inner) (link ?? cell).append(inner);
			line.append(cell);
			return { cell, link, inner };
		});
		return line;
	};
	const update = (line, row) => {
		const words = says?.(row);
		if (words !== undefined && line.says_ === words) return;
		line.says_ = words;
		columns.forEach((column, n) => {
			const { cell, link, inner } = line.cells_[n];
			if (link) attr(link, "href", href(row));
			if (column.set) column.set(inner ?? link ?? cell, row, cell);
			else text(link ?? cell, column.value(row), column.tell);
		});
		if (state) cls(line, state(row) ?? "");
	};
	return { node, update: (rows) => keyed(body, rows, key, make, update) };
}

/** A column of words, and one of figures. */
export const col = (head, value, more) => ({ head, value, ...more });
export const fig = (head, value, more) => ({ head, value, cls: "num", ...more });

/** A choice among few, kept in the address. */
export function choice(page, name, options, fallback, label, changed) {
	const node = h("div.choice", { role: "group", "aria-label": label });
	const render = () => {
		const chosen = page.query.get(name) ?? fallback;
		keyed(node, options(), ([value]) => value,
			([value]) => h("button", { type: "button", click: () => {
				page.set(name, value === fallback ? null : value, true);
				render();
				changed(value);
			} }),
			(button, [value, words]) => {
				text(button, words);
				attr(button, "aria-pressed", String(value === chosen));
			});
	};
	render();
	return { node, render, get value() { return page.query.get(name) ?? fallback; } };
}

/** A filter box, kept in the address; `/` goes there. */
export function filterBox(page, label, changed) {
	const input = h("input", { type: "search", placeholder: "Filter", "aria-label": label, "aria-keyshortcuts": "/", "data-filter": true });
	input.value = page.query.get("q") ?? "";
	input.addEventListener("input", () => {
		page.set("q", input.value || null, true);
		changed();
	});
	return { node: input, get words() { return input.value.trim().toLowerCase(); } };
}
