// Questions to the server. A refusal is an error with the server's own words.

export class Problem extends Error {
	constructor(status, message) {
		super(message);
		this.status = status;
	}
}

// Path parts and query, escaped: `path("/v1/targets", "nz", key, "polls", { limit: 9 })`.
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
		throw new Problem(0, "the server does not answer");
	}
	if (response.ok) return response;
	// What is no JSON is not ours: a proxy's page, perhaps.
	const said = await response.json().catch(() => ({}));
	if (response.status === 401) document.dispatchEvent(new CustomEvent("signed-out"));
	throw new Problem(response.status, said.detail ?? said.title ?? `the server answered ${response.status}`);
}

export async function get(url, signal) {
	return (await ask(url, { signal })).json();
}

export async function all(url, signal, most = 1000) {
	const items = [];
	for (let next = url; next && items.length < most; ) {
		const page = await get(next, signal);
		items.push(...page.items);
		next = page.next;
	}
	return items;
}

// A plain list of several parts, whose way on is in a header: `{ items, next }` of at most so many parts.
export async function listed(url, signal, parts = 1) {
	const items = [];
	let next = url;
	for (let n = 0; next && n < parts; n += 1) {
		const response = await ask(next, { signal });
		items.push(...(await response.json()));
		next = response.headers.get("link")?.match(/<([^>]*)>; rel="next"/)?.[1];
	}
	return { items, next };
}

// A change; answers what the server says, or null when it says nothing.
export async function change(method, url, body) {
	const options = { method };
	if (body !== undefined) {
		options.headers = { "content-type": "application/json" };
		options.body = JSON.stringify(body);
	}
	const response = await ask(url, options);
	return response.status === 204 ? null : response.json();
}
