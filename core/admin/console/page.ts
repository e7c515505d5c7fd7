import { readFileSync } from "node:fs";
import type { Context } from "koa";
import type { Approval } from "../../action/approval.ts";
import type { ActivePolicy } from "../../action/policy.ts";
import type { Principal } from "../../action/principal.ts";
import type { Approvals } from "../../approval/approvals.ts";
import { listLive } from "../../approval/history.ts";
import type { Ledger } from "../../evidence/ledger.ts";
import { evidenceStanding } from "../../evidence/operation.ts";
import type { Handlers } from "../../http/app.ts";
import type { Health } from "../../http/health.ts";
import type { LiveFeed } from "../../observe/live-feed.ts";
import type { Metrics } from "../../observe/metrics.ts";
import type { ProviderFleet } from "../../provider/fleet.ts";
import { showProvider } from "../../provider/view.ts";
import type { SessionDirectory, SessionView } from "../../session/session-directory.ts";
import type { UpstreamFleet } from "../../upstream/fleet.ts";

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
  return { type, body: readFileSync(new URL(`../../../../core/admin/console/asset/${name}`, import.meta.url)) };
}

interface DashboardParts {
  readonly health: () => Health;
  readonly live: LiveFeed;
  readonly ledger: Ledger;
  readonly approvals: Approvals;
  readonly fleet: UpstreamFleet;
  readonly providers: ProviderFleet;
  readonly sessions: SessionOverview;
  readonly metrics: Metrics;
  readonly policies: () => readonly ActivePolicy[];
}

const maxApprovals = 50;
const maxShadowDecisions = 100;

/** What anybody may know who reaches the port, and why it is no more. */
function publicData({ health }: Pick<DashboardParts, "health">): object {
  const notice =
    "Protected views need an API key. This page neither asks for one nor keeps one: let a reverse proxy that has " +
    "authenticated you add it as `X-API-Key`.";
  return { service: health(), authentication: { required: true, notice } };
}

/** How the caller's tenant stands now; nothing of arguments and answers. */
async function tenantData(parts: DashboardParts, { tenant, role }: Principal): Promise<object> {
  const { health, live, ledger, approvals, fleet, providers, policies } = parts;
  return {
    service: health(),
    authentication: { required: true, tenant, role },
    decisions: live.latest(tenant),
    rates: live.standing(tenant),
    sessions: await parts.sessions.read(tenant),
    approvals: listLive(approvals.book, tenant, "pending", { limit: maxApprovals }).items.map(viewApproval),
    shadow_decisions: parts.metrics.shadowLog.list(tenant, { limit: maxShadowDecisions }).items,
    upstreams: fleet.health(),
    providers: providers.health().map(showProvider),
    evidence: evidenceStanding(ledger, tenant),
    extensions: policies(),
  };
}

function viewApproval({ id, action, evaluation, requested_at, expires_at, required, endorsements }: Approval): object {
  const { tool, target, capability, protocol } = action;
  const { risk, rules } = evaluation;
  const endorsed = endorsements.length;
  return { id, tool, target, capability, protocol, risk, rules, requested_at, expires_at, required, endorsed };
}

/** An answer under way, or one that is good for others until `until` (monotonic, milliseconds). */
interface Shared {
  readonly sessions: Promise<readonly SessionView[]>;
  until: number;
}

const most = 20;
/** An answer, or a failure, is shared for so many times as long as it took: looking takes at most a tenth of the time. */
const restFactor = 9;

/**
 * The sessions of a tenant with the highest risk. To find them all sessions are read, 2 µs each: however many pages are
 * open, one of them looks for all, and no more often than the number of sessions allows.
 */
export class SessionOverview {
  readonly #directory: Pick<SessionDirectory, "list">;
  /** Monotonic, milliseconds. */
  readonly #elapsedMs: () => number;
  /** By tenant. */
  readonly #shared = new Map<string, Shared>();

  constructor(directory: Pick<SessionDirectory, "list">, elapsedMs: () => number = () => performance.now()) {
    this.#directory = directory;
    this.#elapsedMs = elapsedMs;
  }

  async read(tenant: string): Promise<readonly SessionView[]> {
    const known = this.#shared.get(tenant);
    if (known !== undefined && this.#elapsedMs() < known.until) return known.sessions;
    const began = this.#elapsedMs();
    const shared: Shared = { sessions: this.#look(tenant), until: Number.POSITIVE_INFINITY };
    this.#shared.set(tenant, shared);
    try {
      return await shared.sessions;
    } finally {
      const ended = this.#elapsedMs();
      shared.until = ended + restFactor * (ended - began);
    }
  }

  async #look(tenant: string): Promise<readonly SessionView[]> {
    return (await this.#directory.list(tenant, "risk", most)).items;
  }
}
