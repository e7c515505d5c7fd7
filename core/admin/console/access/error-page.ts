import type { Context } from "koa";
import type { GatewayError } from "../../../action/error.ts";
import { accessRoutes } from "./route.ts";

/** The paths that browsers lead people to, without a page that could show them what went wrong. */
const navigated: ReadonlySet<string> = new Set(
  (["console.link", "console.sign_in", "console.callback"] as const).map((id) => accessRoutes[id].path),
);

const escapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Renders an error of a sign-in for a person, where the client prefers HTML to JSON. False: not for this request. */
export function renderSignInError(ctx: Context, error: GatewayError, requestId: string): boolean {
  if (!navigated.has(ctx.path) || ctx.accepts("json", "html") !== "html") return false;
  ctx.status = error.row.status;
  ctx.set({
    "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
  });
  ctx.type = "text/html; charset=utf-8";
  const shown = (text: string): string => text.replace(/[&<>"']/g, (each) => escapes[each] as string);
  ctx.body = `<!doctype html>
<html lang="en">
<title>Not signed in</title>
<h1>Not signed in</h1>
<p>${shown(error.publicMessage)}</p>
<p>Request ${shown(requestId)}</p>
<p><a href="/">The console</a></p>
</html>
`;
  return true;
}
