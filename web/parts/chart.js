// Charts: steps over time with axes, units and values on hover; sparklines; columns.

import { attr, h, s } from "../dom.js";
import { full, num, second } from "../format.js";
import { canvas, colour, fill, steps, timeAxis, tipped, write } from "./canvas.js";

const LEFT = 44;
const FOOT = 20;
const HEAD = 8;

// A chart of step functions: a value holds until the next one. Update with `{ lines, from, to, marks, now }`: lines are
// `{ name, colour, points: [{ at, value, gap }], soft }`, marks `{ at, words }`.
export function stepChart(page, { unit, format }) {
	let data = null;
	const node = canvas("chart", (context, width, height) => data && draw(context, width, height));
	const x = (moment) => LEFT + ((moment - data.from) / (data.to - data.from)) * (node.clientWidth - LEFT - 8);
	const named = () => data?.lines.filter((line) => !line.soft) ?? [];
	const look = (at) => {
		const shown = named().map((line) => [line, line.points.findLast((point) => point.at <= at)]).filter(([, point]) => point?.value != null);
		const words = shown.map(([line, point]) => h("span", `${line.name} `, h("b.num", format(point.value)), point.gap ? " (moves before it are lost)" : ""));
		return words.length ? { at, x: x(at), lines: [h("span.soft", second(at)), ...words] } : null;
	};
	const box = tipped(page, node, {
		look,
		near: (left) => data && look(data.from + Math.max(0, Math.min(1, (left - LEFT) / (x(data.to) - LEFT))) * (data.to - data.from)),
		stops: () => named().flatMap(({ points }) => points.map(({ at }) => at)).filter((at) => at >= data.from),
	});

	function draw(context, width, height) {
		// What held when the window began counts, too.
		const seen = ({ points }) => points.filter((point, n) => point.at >= data.from || (points[n + 1]?.at ?? Infinity) > data.from);
		const values = data.lines.flatMap((line) => seen(line).map((point) => point.value)).filter((value) => value != null);
		let [least, most] = [Math.min(...values), Math.max(...values)];
		if (!values.length) [least, most] = [0, 1];
		if (most - least < 1e-9) [least, most] = [least - 0.5, most + 0.5];
		const room = (most - least) * 0.08;
		[least, most] = [least - room, most + room];
		const y = (value) => HEAD + (1 - (value - least) / (most - least)) * (height - FOOT - HEAD);
		axes(context, width, height, least, most, y);
		for (const mark of data.marks ?? []) {
			const left = Math.round(x(mark.at));
			for (let top = HEAD; top < height - FOOT; top += 5) fill(context, "soft", left, top, 1, 2);
			const wide = context.measureText(mark.words).width + 4;
			write(context, mark.words, left + wide > width ? left - wide : left + 3, HEAD + 8);
		}
		context.save();
		context.beginPath();
		context.rect(LEFT, 0, width - LEFT, height - FOOT);
		context.clip();
		for (const line of [...data.lines].sort((a, b) => Boolean(b.soft) - Boolean(a.soft))) path(context, line, y);
		context.restore();
		if (node.pointed) fill(context, "soft", Math.round(x(node.pointed.at)), HEAD, 1, height - FOOT - HEAD);
	}

	function axes(context, width, height, least, most, y) {
		context.textAlign = "right";
		for (const value of steps(least, most, Math.max(2, (height - FOOT) / 36))) {
			fill(context, "line", LEFT, Math.round(y(value)), width - LEFT - 8, 1);
			write(context, format(value), LEFT - 5, y(value) + 4);
		}
		timeAxis(context, width, height - 5, data.from, data.to, x);
	}

	function path(context, line, y) {
		const points = line.points.filter((point) => point.value != null);
		if (!points.length) return;
		context.strokeStyle = colour(line.soft ? "edge" : line.colour);
		context.lineWidth = line.soft ? 1 : 2;
		context.setLineDash(line.dash ? [5, 4] : []);
		context.beginPath();
		points.forEach((point, n) => {
			if (n === 0) context.moveTo(x(point.at), y(point.value));
			else {
				context.lineTo(x(point.at), y(points[n - 1].value));
				context.lineTo(x(point.at), y(point.value));
			}
		});
		const end = Math.min(data.to, data.now ?? data.to);
		if (end > points.at(-1).at) context.lineTo(x(end), y(points.at(-1).value));
		context.stroke();
		context.setLineDash([]);
		if (line.soft) return;
		for (const point of points.filter((one) => one.gap)) {
			fill(context, "warn", x(point.at) - 2, y(point.value) - 2, 4, 4);
		}
	}

	return {
		node: box,
		update(next) {
			data = next;
			const shown = named().filter((line) => line.points.length);
			attr(node, "aria-label", `${unit} from ${full(data.from)} to ${full(data.to)}: ${shown.map((line) => `${line.name} ${format(line.points[0].value)} to ${format(line.points.at(-1).value)}`).join(", ")}`);
			node.drawing();
		},
	};
}

// A small line without axes; its last value stands beside it. Steps, because prices do not slide.
export function spark() {
	const [width, height] = [72, 18];
	const line = s("path", { fill: "none" });
	const dot = s("circle", { r: 1.8 });
	const node = s("svg.spark", { viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" }, line, dot);
	const update = (values) => {
		const known = values.map((value, n) => [n, value]).filter(([, value]) => value != null);
		if (known.length < 2) {
			attr(line, "d", "");
			attr(dot, "cx", -9);
			return;
		}
		const all = known.map(([, value]) => value);
		const [least, most] = [Math.min(...all), Math.max(...all)];
		const x = (n) => (2 + (n / Math.max(1, values.length - 1)) * (width - 4)).toFixed(1);
		const y = (value) => (2 + (1 - (value - least) / (most - least || 1)) * (height - 4)).toFixed(1);
		const points = known.map(([n, value]) => [x(n), y(value)]);
		attr(line, "d", `M${points[0].join(" ")}${points.slice(1).map((point) => `H${point.join("V")}`).join("")}`);
		attr(dot, "cx", points.at(-1)[0]);
		attr(dot, "cy", points.at(-1)[1]);
	};
	return { node, update };
}

// Columns with a label below and the count above, an axis of round counts, and both in words on hover: a histogram.
// Update with `[{ label, count, tone }]`.
export function columns(page, { words }) {
	let bars = [];
	const left = 34;
	const stepOf = (width) => (width - left) / Math.max(1, bars.length);
	const node = canvas("", (context, width, height) => {
		const most = Math.max(1, ...bars.map((bar) => bar.count));
		const step = stepOf(width);
		const y = (count) => height - 18 - (count / most) * (height - 36);
		const widest = Math.max(...bars.map((bar) => context.measureText(bar.label).width));
		context.textAlign = "right";
		for (const count of steps(0, most, (height - 36) / 30).filter(Number.isInteger)) {
			fill(context, "line", left, Math.round(y(count)), width - left, 1);
			write(context, brief(count), left - 5, y(count) + 4);
		}
		context.textAlign = "center";
		bars.forEach((bar, n) => {
			const from = left + n * step;
			const top = Math.min(y(bar.count), y(0) - 1);
			if (bar.count) fill(context, bar.tone ?? "accent", from + 2, top, Math.max(1, step - 4), y(0) - top);
			context.fillStyle = colour("ink");
			if (bar.count && context.measureText(num(bar.count)).width < step + 8) context.fillText(num(bar.count), from + step / 2, top - 4);
			if (n % Math.ceil((widest + 4) / step) === 0) write(context, bar.label, from + step / 2, height - 4);
		});
		context.textAlign = "left";
	});
	const look = (at) => bars[at] && { at, x: left + (at + 0.5) * stepOf(node.clientWidth), lines: [h("span.soft", bars[at].label), h("b.num", num(bars[at].count))] };
	const box = tipped(page, node, { look, near: (x) => look(Math.floor((x - left) / stepOf(node.clientWidth))), stops: () => bars.map((_, n) => n) });
	return {
		node: box,
		update(next) {
			bars = next;
			attr(node, "aria-label", `${words}: ${bars.filter((bar) => bar.count).map((bar) => `${bar.label} ${bar.count}`).join(", ") || "nothing yet"}`);
			node.drawing();
		},
	};
}

// A count that fits beside an axis: `950`, `1.2K`.
const brief = (count) => count.toLocaleString("en", { notation: "compact", maximumFractionDigits: 1 });

// A bar from 0 to a limit, with a mark where the budget ends.
export function meter() {
	const used = h("i");
	const mark = h("b", { hidden: true });
	const node = h("span.meter", { role: "img" }, used, mark);
	return {
		node,
		update(value, limit, budget, words) {
			used.style.width = `${Math.min(100, (100 * value) / (limit || 1))}%`;
			node.classList.toggle("full", value > 0.95 * limit);
			mark.hidden = budget == null || budget >= limit;
			if (!mark.hidden) mark.style.left = `${(100 * budget) / limit}%`;
			attr(node, "aria-label", words);
			attr(node, "title", words);
		},
	};
}
