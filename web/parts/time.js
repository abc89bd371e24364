// Ages, countdowns and rings that tick from one shared clock, the server's.

import { attr, cls, h, s, seen, text, unseen } from "../dom.js";
import { age, full, toStart, until } from "../format.js";
import { clock, tick } from "../live.js";

const here = new Set();
tick((now) => here.forEach((element) => element.beat(now)));

// An element that beats while it is on the screen.
export class Beating extends HTMLElement {
	connectedCallback() {
		seen(this, (is) => {
			here[is ? "add" : "delete"](this);
			if (is) this.beat(clock.now());
		});
		this.beat(clock.now());
	}

	disconnectedCallback() {
		unseen(this);
		here.delete(this);
	}
}

// `<so-time>`: `value` in milliseconds, shown as `age`, `until`, `start` (with `over`) or `none`.
class SoTime extends Beating {
	beat(now) {
		const { value, mode } = this;
		const words =
			mode === "age" ? (value == null ? "never" : age(now - value))
			: mode === "until" ? until(value == null ? null : value - now)
			: mode === "none" ? "–"
			: toStart(value, now, this.over);
		text(this, words);
		const late = mode === "start" && !this.over && value != null && value < now;
		if (this.classList.contains("late") !== late) this.classList.toggle("late", late);
	}

	set(value, mode, over = false) {
		Object.assign(this, { value, mode, over });
		attr(this, "title", value == null ? null : full(value));
		if (this.isConnected) this.beat(clock.now());
		return this;
	}
}
customElements.define("so-time", SoTime);

export function timeOf(value, mode = "age", over = false) {
	return document.createElement("so-time").set(value, mode, over);
}

// A ring that empties until the next poll, with the countdown beside it.
const ROUND = 2 * Math.PI * 7;

class SoRing extends Beating {
	arc = s("circle.arc", { cx: 9, cy: 9, r: 7, "stroke-dasharray": `0 ${ROUND}`, transform: "rotate(-90 9 9)" });
	left = timeOf(null, "until");

	connectedCallback() {
		if (!this.firstChild) this.append(s("svg", { viewBox: "0 0 18 18", "aria-hidden": "true" }, s("circle.base", { cx: 9, cy: 9, r: 7 }), this.arc), this.left);
		super.connectedCallback();
	}

	set(due, interval) {
		Object.assign(this, { due, interval });
		this.left.set(due, "until");
		if (this.isConnected) this.beat(clock.now());
	}

	beat(now) {
		const left = this.due == null ? 0 : Math.max(0, Math.min(1, (this.due - now) / (this.interval || 1)));
		// Hundredths are what can be seen of it.
		attr(this.arc, "stroke-dasharray", `${(Math.round(left * 100) / 100) * ROUND} ${ROUND}`);
		cls(this, this.due == null ? "over" : this.due <= now ? "due" : "");
	}
}
customElements.define("so-ring", SoRing);

export const ring = () => h("so-ring");
