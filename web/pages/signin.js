import { change, h, live, put, text } from "../kit.js";

export const title = "Sign in";

export function mount(root, page) {
	const says = h("p.says.bad", { role: "alert" });
	const input = h("input", { type: "password", id: "token", autocomplete: "current-password", required: true });
	const form = h("form.panel", { submit: async (event) => {
		event.preventDefault();
		try {
			await change("POST", "/v1/session", { token: input.value.trim() });
			live.again();
			const to = page.get("to") ?? "/";
			history.replaceState(null, "", /^\/(?!\/)/.test(to) ? to : "/");
			dispatchEvent(new PopStateEvent("popstate"));
		} catch (error) {
			text(says, error.message);
		}
	} }, h("h2", "A token is needed here"), h("p.soft", "Make one with ", h("code", "stakeout token create"), "."), h("label", { for: "token" }, "Token"), input, h("button", { type: "submit" }, "Sign in"), says);
	put(root, form);
	input.focus();
}
