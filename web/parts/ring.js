// A ring that empties until the next poll, with the countdown beside it.

import { attr, cls, h, s } from "../dom.js";
import { clock, tick } from "../live.js";
import { seen, unseen } from "./seen.js";
import { timeOf } from "./time.js";

const ROUND = 2 * Math.PI * 7;
const here = new Set();
tick((now) => here.forEach((ring) => ring.beat(now)));

export class SoRing extends HTMLElement {
	due = null;
	interval = 0;

	connectedCallback() {
		seen(this, (is) => {
			here[is ? "add" : "delete"](this);
			if (is) this.beat(clock.now());
		});
		if (this.arc) return this.beat(clock.now());
		this.arc = s("circle.arc", { cx: 9, cy: 9, r: 7, "stroke-dasharray": `0 ${ROUND}`, transform: "rotate(-90 9 9)" });
		this.left = timeOf(this.due, "until");
		this.left.className = "num";
		this.append(s("svg", { viewBox: "0 0 18 18", "aria-hidden": "true" }, s("circle.base", { cx: 9, cy: 9, r: 7 }), this.arc), this.left);
		this.beat(clock.now());
	}

	disconnectedCallback() {
		unseen(this);
		here.delete(this);
	}

	set(due, interval) {
		this.due = due;
		this.interval = interval;
		this.left?.set(due, "until");
		if (here.has(this)) this.beat(clock.now());
		return this;
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
