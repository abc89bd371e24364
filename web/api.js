// Questions to the server. A refusal is an error with the server's own words.

export class Problem extends Error {
	constructor(status, name, message) {
		super(message);
		this.status = status;
		this.name = name;
	}
}

/** Path parts and query, escaped: `path("/v1/targets", "nz", key, "polls", { limit: 9 })`. */
export function path(base, ...parts) {
	const last = parts.at(-1);
	const query = last === undefined || typeof last === "object" ? (parts.pop() ?? {}) : {};
	const url = [base, ...parts.map(encodeURIComponent)].join("/");
	const pairs = Object.entries(query).filter(([, value]) => value != null && value !== "");
	return pairs.length ? `${url}?${new URLSearchParams(pairs)}` : url;
}

async function ask(url, options = {}) {
	let response;
	try {
		response = await fetch(url, { credentials: "same-origin", ...options });
	} catch (error) {
		if (error.name === "AbortError") throw error;
		throw new Problem(0, "unreachable", "the server does not answer");
	}
	if (response.ok) return response;
	let said = {};
	try {
		said = await response.json();
	} catch {
		// Not ours, then: a proxy's page, perhaps.
	}
	const name = String(said.type ?? "").split(":").pop() || String(response.status);
	if (response.status === 401) document.dispatchEvent(new CustomEvent("signed-out"));
	throw new Problem(response.status, name, said.detail ?? said.title ?? `the server answered ${response.status}`);
}

export async function get(url, signal) {
	return (await ask(url, { signal })).json();
}

export async function getText(url, signal) {
	return (await ask(url, { signal })).text();
}

/** All pages of a list, up to `most` things. */
export async function all(url, signal, most = 1000) {
	const items = [];
	for (let next = url; next && items.length < most; ) {
		const page = await get(next, signal);
		items.push(...page.items);
		next = page.next;
	}
	return items;
}

/** A change; answers what the server says, or null when it says nothing. */
export async function change(method, url, body) {
	const options = { method };
	if (body !== undefined) {
		options.headers = { "content-type": "application/json" };
		options.body = JSON.stringify(body);
	}
	const response = await ask(url, options);
	return response.status === 204 ? null : response.json();
}

let described = null;

/** Whether the server has a route, or a parameter of it: what it has not is not asked for. */
export async function can(route, parameter) {
	described ??= get("/v1/openapi.json").catch(() => {
		described = null;
		return { paths: {} };
	});
	const found = (await described).paths[route];
	return parameter ? Boolean(found?.get?.parameters?.some(({ name }) => name === parameter)) : Boolean(found);
}

/** Prometheus' text format as `{ name: [{ labels, value }] }`. */
export function metrics(page) {
	const found = {};
	for (const line of page.split("\n")) {
		const match = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line);
		if (!match) continue;
		const labels = {};
		for (const [, label, value] of (match[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[label] = value.replace(/\\(.)/g, "$1");
		(found[match[1]] ??= []).push({ labels, value: Number(match[3]) });
	}
	return found;
}
