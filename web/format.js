// Numbers, ages, clocks and names as people read them. Pure functions: what time it is comes in.

export const time = (stamp) => (stamp == null ? null : typeof stamp === "number" ? stamp : Date.parse(stamp));

const two = (n) => String(n).padStart(2, "0");

// `m:ss`, or `h:mm:ss`, of milliseconds.
export function clockOf(ms) {
	const s = Math.floor(Math.abs(ms) / 1000);
	const [hours, minutes, seconds] = [Math.floor(s / 3600), Math.floor(s / 60) % 60, s % 60];
	return hours ? `${hours}:${two(minutes)}:${two(seconds)}` : `${minutes}:${two(seconds)}`;
}

// `12 s ago`, `3 min ago`; what is less than a second ago is now.
export function age(ms) {
	if (ms == null || Number.isNaN(ms)) return "never";
	if (ms < 1000) return "now";
	return `${span(ms)} ago`;
}

// A duration in its largest unit that says enough: `820 ms`, `12 s`, `3 min`, `5 h`, `2 d`.
export function span(ms) {
	if (ms == null) return "–";
	const a = Math.abs(ms);
	if (a < 10) return `${num(ms, 1)} ms`;
	if (a < 1000) return `${Math.round(ms)} ms`;
	if (a < 10_000) return `${num(ms / 1000, a % 1000 ? 1 : 0)} s`;
	if (a < 120_000) return `${Math.floor(ms / 1000)} s`;
	if (a < 7_200_000) return `${Math.floor(ms / 60_000)} min`;
	if (a < 172_800_000) return `${Math.floor(ms / 3_600_000)} h`;
	return `${Math.floor(ms / 86_400_000)} d`;
}

// Quantiles of a histogram are known up to the step they fall into.
export const atMost = (ms) => (ms == null ? "–" : `≤ ${span(ms)}`);

export const until = (ms) => (ms == null ? "never" : ms <= 0 ? "due" : clockOf(ms + 999));

export function toStart(start, now, over) {
	if (start == null) return "no time yet";
	if (over || start - now > 5_400_000) return hour(start);
	return start >= now ? `in ${clockOf(start - now)}` : `Delayed +${clockOf(now - start)}`;
}

const format = (parts) => new Intl.DateTimeFormat(undefined, { hourCycle: "h23", ...parts });
const HOUR = format({ hour: "2-digit", minute: "2-digit" });
const SECOND = format({ hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = format({ weekday: "short", day: "numeric", month: "short" });
const FULL = format({ dateStyle: "medium", timeStyle: "medium" });

export const hour = (ms) => (ms == null ? "–" : HOUR.format(ms));
export const second = (ms) => (ms == null ? "–" : SECOND.format(ms));
export const full = (ms) => (ms == null ? "never" : FULL.format(ms));

// A date without a zone, `2026-11-15`, as `Sun, Nov 15`.
export function day(date) {
	const [y, m, d] = date.split("-").map(Number);
	return DAY.format(new Date(y, m - 1, d));
}

// A table's time, on the venue's clock and without a zone: `Sun, Nov 15 18:45`.
export const slotTime = (start) => `${day(start.slice(0, 10))} ${start.slice(11, 16)}`;

export const num = (n, decimals = 0) =>
	n == null || Number.isNaN(n)
		? "–"
		: n.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });

const UNITS = ["B", "KB", "MB", "GB", "TB"];
export const bytes = (n) => {
	if (n == null) return "–";
	const power = n < 1e3 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log10(n) / 3));
	return `${(n / 1e3 ** power).toLocaleString("en", { maximumFractionDigits: 1 })} ${UNITS[power]}`;
};

// A rate per second, or per minute when that reads better.
export const rate = (perSecond) =>
	perSecond == null ? "–" : perSecond >= 1 || perSecond === 0 ? `${num(perSecond, perSecond < 100 ? 1 : 0)}/s` : `${num(perSecond * 60, 1)}/min`;

export const price = (odds) => (odds == null ? "–" : num(odds, odds < 100 ? 2 : 0));

// Cents as dollars, short enough for a column.
export function dollars(cents) {
	if (cents == null) return "–";
	const d = cents / 100;
	const a = Math.abs(d);
	return a >= 10_000 ? `${num(d / 1000, 0)}k` : a >= 1000 ? `${num(d / 1000, 1)}k` : num(d, 0);
}

// A lap: `5.007`, `1:02.113`.
export function lap(seconds) {
	if (seconds == null) return "–";
	const minutes = Math.floor(seconds / 60);
	const rest = (seconds - minutes * 60).toFixed(3);
	return minutes ? `${minutes}:${rest.padStart(6, "0")}` : rest;
}

// Columns of a race's timeline: `60m`, `0`, `+30s`.
export function bucket(minutes) {
	if (minutes > 0) return `${minutes}m`;
	if (minutes === 0) return "0";
	const s = -minutes * 60;
	return s % 60 ? `+${Math.floor(s / 60) ? `${Math.floor(s / 60)}:30` : "30s"}` : `+${s / 60}m`;
}

// Why a poll was late, missed or failed.
const CAUSES = {
	queue: "our own work was in the way", rate_limit: "the rate limit", upstream_slow: "slow answers", backoff: "a pause after failures", downtime: "nothing ran",
	lease_lost: "another node took over", malformed: "answer not understood", refused: "nobody answered", reset: "connection broke", timeout: "no answer in time",
};
export const cause = (name) => CAUSES[name] ?? (name ?? "").replaceAll("_", " ");
// Counts by cause in words, the largest first.
export const causes = (counts) => Object.entries(counts).sort((a, b) => b[1] - a[1]).map(([name, n]) => `${cause(name)} ${num(n)}`).join(", ");

export const plural = (n, one, many = `${one}s`) => `${num(n)} ${n === 1 ? one : many}`;

// A value as somebody types it: JSON, or else a text.
export function parsed(words) {
	try {
		return JSON.parse(words);
	} catch {
		return words;
	}
}

export function plain(value) {
	if (value == null) return "–";
	if (typeof value === "string") {
		return /^\d{4}-\d\d-\d\dT/.test(value) ? second(Date.parse(value)) : value.length > 60 ? `${value.slice(0, 57)}…` : value;
	}
	if (typeof value === "object") return JSON.stringify(value).slice(0, 60);
	return value.toLocaleString("en");
}
