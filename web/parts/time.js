// Ages and countdowns that tick from one shared clock, the server's.

import { attr, text } from "../dom.js";
import { age, full, toStart, until } from "../format.js";
import { clock, tick } from "../live.js";
import { seen, unseen } from "./seen.js";

const here = new Set();
tick((now) => here.forEach((element) => element.beat(now)));

/** `<so-time>`: set `value` (milliseconds) and `mode`: `age`, `until`, `start` (with `over`) or `none`. */
export class SoTime extends HTMLElement {
	value = null;
	mode = "age";
	over = false;

	connectedCallback() {
		seen(this, (is) => here[is ? "add" : "delete"](this));
		this.beat(clock.now());
	}

	disconnectedCallback() {
		unseen(this);
		here.delete(this);
	}

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
		this.value = value;
		this.mode = mode;
		this.over = over;
		attr(this, "title", value == null ? null : full(value));
		if (this.isConnected) this.beat(clock.now());
		return this;
	}
}
customElements.define("so-time", SoTime);

/** A new one. */
export function timeOf(value, mode = "age", over = false) {
	return document.createElement("so-time").set(value, mode, over);
}
