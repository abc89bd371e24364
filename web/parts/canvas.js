// What all drawings share: a canvas as sharp as the screen, redrawn whole, in the colours of the theme.

import { h, put, say, seen, unseen } from "../dom.js";
import { hour, second } from "../format.js";

const size = new ResizeObserver((entries) => entries.forEach(({ target }) => target.drawing?.()));
const dark = matchMedia("(prefers-color-scheme: dark)");

let palette = null;
let font = null;
export function forgetColours() {
	palette = null;
	document.querySelectorAll("canvas").forEach((canvas) => canvas.drawing?.());
}
dark.addEventListener("change", forgetColours);

export function colour(name) {
	palette ??= new Map();
	if (!palette.has(name)) {
		// Only a used property has light-dark() resolved.
		const probe = document.createElement("i");
		probe.hidden = true;
		probe.style.color = `var(--${name})`;
		document.body.append(probe);
		palette.set(name, getComputedStyle(probe).color);
		probe.remove();
	}
	return palette.get(name);
}

// A block in a colour of the theme; small words.
export function fill(context, name, ...block) {
	context.fillStyle = colour(name);
	context.fillRect(...block);
}
export function write(context, ...words) {
	context.fillStyle = colour("soft");
	context.fillText(...words);
}

// A canvas that calls `draw(context, width, height)` when it is seen, resized, or `drawing()` is called.
export function canvas(className, draw) {
	const node = document.createElement("canvas");
	node.className = className;
	node.setAttribute("role", "img");
	// It has words from the beginning, also while there is nothing to draw yet.
	node.setAttribute("aria-label", "waiting for numbers");
	node.drawing = () => {
		if (!node.isSeen) return;
		const { clientWidth: width, clientHeight: height } = node;
		if (!width || !height) return;
		const ratio = devicePixelRatio || 1;
		const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
		if (node.width !== w || node.height !== h) {
			node.width = w;
			node.height = h;
		}
		const context = node.getContext("2d");
		context.setTransform(ratio, 0, 0, ratio, 0, 0);
		context.clearRect(0, 0, width, height);
		context.font = font ??= `11px ${getComputedStyle(document.body).fontFamily}`;
		draw(context, width, height);
	};
	size.observe(node);
	seen(node, (is) => {
		node.isSeen = is;
		if (is) node.drawing();
	});
	return node;
}

export function done(node) {
	unseen(node);
	size.unobserve(node);
}

// A drawing with words beside what is pointed at, by the mouse or by the arrow keys: `near(x)` gives `{ at, x, lines }`, or
// null where there is nothing to say; `look(at)` gives the same for one of the `stops()`, which are what the keys step through.
export function tipped(page, node, { near, stops, look }) {
	page.end(() => done(node));
	const tip = h("div.tip", { hidden: true });
	let at = null; // Where the keys are: a mouse that rests there has nothing to say until it is used.
	const show = (found) => {
		node.pointed = found;
		node.drawing();
		tip.hidden = !found;
		if (!found) return;
		put(tip, ...found.lines.map((line) => h("div", line)));
		tip.style.left = `${found.x > node.clientWidth / 2 ? found.x - tip.offsetWidth - 10 : found.x + 10}px`;
	};
	const step = ({ key }) => {
		const way = { ArrowLeft: -1, ArrowRight: 1 }[key];
		if (!way) return;
		const ahead = stops().filter((one) => way * (one - (at ?? -way * Infinity)) > 0);
		if (!ahead.length) return;
		at = way < 0 ? Math.max(...ahead) : Math.min(...ahead);
		show(look(at));
		say(tip.innerText);
	};
	const leave = () => show((at = null));
	return h("div.tip-box", {
		tabindex: "0", role: "group", "aria-label": "Values, by the arrow keys", keydown: step, blur: leave, mousedown: leave,
		mousemove: (event) => at ?? show(near(event.offsetX)), mouseleave: () => at ?? leave(),
	}, node, tip);
}

// Round steps for an axis: about `count` of them from `low` to `high`.
export function steps(low, high, count) {
	const rough = (high - low) / Math.max(1, count) || 1;
	const power = 10 ** Math.floor(Math.log10(rough));
	const step = [1, 2, 2.5, 5, 10].map((n) => n * power).find((n) => n >= rough);
	const found = [];
	for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-6; at += step) found.push(Number(at.toPrecision(12)));
	return found;
}

const SPANS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400].map((s) => s * 1000);

// Moments with round times, below a drawing.
export function timeAxis(context, width, bottom, from, to, x) {
	const count = Math.max(2, (x(to) - x(from)) / 85);
	const step = SPANS.find((span) => (to - from) / span <= count) ?? 86_400_000 * Math.ceil((to - from) / 86_400_000 / count);
	const zone = new Date(from).getTimezoneOffset() * 60_000;
	context.textAlign = "center";
	for (let at = Math.ceil((from - zone) / step) * step + zone; at <= to; at += step) {
		const words = step < 60_000 ? second(at) : hour(at);
		const half = context.measureText(words).width / 2;
		write(context, words, Math.max(half, Math.min(width - half, x(at))), bottom);
		context.fillRect(Math.round(x(at)), bottom - 15, 1, 4);
	}
	context.textAlign = "left";
}
