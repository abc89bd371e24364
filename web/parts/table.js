// A table whose rows stay where they are: cells are set one by one, and only when they say something else.

import { attr, cls, h, keyed, scroll, text } from "../dom.js";
import { time } from "../format.js";
import { done } from "./canvas.js";
import { timeOf } from "./time.js";
import { track } from "./track.js";

// Columns are `{ head, value(row) }` for text, or `{ head, make(row), set(node, row) }`. Where `says(row)` is what it was,
// the row is left alone.
export function table({ caption, columns, key, href, state, says, none, sticky = true }) {
	const body = h("tbody");
	const head = (column) =>
		h("th", { scope: "col", class: column.cls, title: column.title }, column.head, column.unit ? h("small", ` ${column.unit}`) : null);
	const grid = h("table", h("caption.unseen", caption), h("thead", h("tr", ...columns.map(head))), body);
	const box = scroll(sticky ? ".sticky" : "", caption, grid);
	const empty = none ? h("p.soft", none) : null;
	const node = empty ? h("div", empty, box) : box;

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
		line.gone = () => line.cells_.forEach(({ inner }) => inner?.gone?.());
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
	return { node, update: (rows) => {
		if (empty) [empty.hidden, box.hidden] = [rows.length > 0, !rows.length];
		keyed(body, rows, key, make, update);
	} };
}

export const col = (head, value, more) => ({ head, value, ...more });
export const fig = (head, value, more) => ({ head, value, cls: "num", ...more });
export const when = (head, at) => ({ head, cls: "num", make: () => timeOf(null), set: (node, row) => node.set(time(at(row))) });

// A column of targets' lines, kept by key in `lines` for as long as their rows are there.
export function lineOf(page, lines, head, key, unit) {
	page.end(() => lines.forEach(({ node }) => done(node)));
	return { head, unit, cls: "wide", make: (row) => {
		const line = track();
		lines.set(key(row), line);
		line.node.gone = () => {
			done(line.node);
			if (lines.get(key(row)) === line) lines.delete(key(row));
		};
		return line.node;
	}, set: () => {} };
}

// A choice among few values, with words where they need them, kept in the address; what holds unless something is chosen may change, and is a function then.
export function choice(page, name, options, usual, label, changed) {
	const node = h("div.choice", { role: "group", "aria-label": label });
	const otherwise = () => (typeof usual === "function" ? usual() : usual);
	const chosen = () => page.get(name) ?? otherwise();
	const render = () => {
		const now = chosen();
		keyed(node, options(), ([value]) => value,
			([value]) => h("button", { click: () => {
				page.set(name, value === otherwise() ? null : value, true);
				render();
				changed();
			} }),
			(button, [value, words = value]) => {
				text(button, words);
				attr(button, "aria-pressed", String(value === now));
			});
	};
	render();
	return { node, render, get value() { return chosen(); } };
}

// Which source of a family is shown. It is seen where there are several; `of` takes them and answers the chosen one.
export function sourceChoice(page, changed) {
	let names = [];
	const pick = choice(page, "source", () => names.map((name) => [name]), () => names[0], "Source", changed);
	const of = (found) => {
		names = found.map(({ name }) => name);
		pick.node.hidden = names.length < 2;
		pick.render();
		return pick.value;
	};
	of([]);
	return { node: pick.node, of };
}

export function filterBox(page, label, changed) {
	const input = h("input", { type: "search", placeholder: "Filter", "aria-label": label, "aria-keyshortcuts": "/", "data-filter": true });
	input.value = page.get("q") ?? "";
	input.addEventListener("input", () => {
		page.set("q", input.value || null, true);
		changed();
	});
	return { node: input, finds: (words) => words.toLowerCase().includes(input.value.trim().toLowerCase()) };
}
