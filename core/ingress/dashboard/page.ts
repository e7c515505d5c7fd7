import { readFileSync } from "node:fs";
import type { Context } from "koa";
import type { Principal } from "../../kernel/principal.ts";
import type { SessionDirectory } from "../../session/session-directory.ts";
import type { Handlers } from "../app.ts";
import { type DashboardParts, publicData, tenantData } from "./data.ts";
import { SessionOverview } from "./session-overview.ts";

export interface DashboardPageParts extends Omit<DashboardParts, "sessions"> {
  readonly sessionDirectory: SessionDirectory;
  /** Who the headers' key belongs to; null where there is none. Throws KEY_UNKNOWN. */
  readonly callerOf: (rawHeaders: readonly string[]) => Principal | null;
}

/** Everything from here, nothing in a frame, no markup out of texts. */
const contentSecurity = [
  "default-src 'self'",
  "script-src 'self'",
  "style-src 'self'",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join("; ");

/** Handlers of the dashboard: a page, its style and script, and the data it shows. */
export function dashboardHandlers(
  parts: DashboardPageParts,
): Pick<Handlers, "dashboard.page" | "dashboard.style" | "dashboard.script" | "dashboard.icon"> {
  const data = { ...parts, sessions: new SessionOverview(parts.sessionDirectory) };
  const page = readAsset("index.html", "text/html; charset=utf-8");
  const style = readAsset("dashboard.css", "text/css; charset=utf-8");
  const script = readAsset("dashboard.js", "text/javascript; charset=utf-8");
  const icon = readAsset("icon.svg", "image/svg+xml");
  return {
    "dashboard.page": async (ctx) => {
      ctx.vary("accept");
      if (ctx.accepts("html", "json") === "json") await answerData(data, ctx);
      else answerAsset(ctx, page);
    },
    "dashboard.style": (ctx) => answerAsset(ctx, style),
    "dashboard.script": (ctx) => answerAsset(ctx, script),
    "dashboard.icon": (ctx) => answerAsset(ctx, icon),
  };
}

async function answerData(parts: DashboardParts & Pick<DashboardPageParts, "callerOf">, ctx: Context): Promise<void> {
  const caller = parts.callerOf(ctx.req.rawHeaders);
  ctx.body = caller === null ? publicData(parts) : await tenantData(parts, caller);
}

interface Asset {
  readonly type: string;
  readonly body: Buffer;
}

function answerAsset(ctx: Context, { type, body }: Asset): void {
  ctx.set({ "content-security-policy": contentSecurity, "referrer-policy": "no-referrer" });
  ctx.type = type;
  ctx.body = body;
}

/** Read at the start, from beside the sources: the build copies nothing. */
function readAsset(name: string, type: string): Asset {
  return { type, body: readFileSync(new URL(`../../../../core/ingress/dashboard/asset/${name}`, import.meta.url)) };
}
