// Ages, countdowns and rings that tick from one shared clock, the server's.

import { attr, cls, h, s, seen, text, unseen } from "../dom.js";
import { age, full, toStart, until } from "../format.js";
import { clock, tick } from "../live.js";

const here = new Set();
tick((now) => here.forEach((element) => element.beat(now)));

// An element that beats while it is on the screen.
class Beating extends HTMLElement {
	connectedCallback() {
		seen(this, (is) => {
			here[is ? "add" : "delete"](this);
			if (is) this.beat(clock.now());
		});
		this.beat(clock.now());
	}

	become(what) {
		Object.assign(this, what);
		if (this.isConnected) this.beat(clock.now());
		return this;
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
		this.classList.toggle("late", mode === "start" && !this.over && value != null && value < now);
	}

	set(value, mode = "age", over = false) {
		attr(this, "title", value == null ? null : full(value));
		return this.become({ value, mode, over });
	}
}
customElements.define("so-time", SoTime);

export const timeOf = (...what) => document.createElement("so-time").set(...what);

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
		this.left.set(due, "until");
		this.become({ due, interval });
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
