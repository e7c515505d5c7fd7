import type { Context } from "koa";
import type { Approval } from "../../action/approval.ts";
import type { ActivePolicy } from "../../action/policy.ts";
import type { Principal } from "../../action/principal.ts";
import type { Approvals } from "../../approval/approvals.ts";
import { listLive } from "../../approval/history.ts";
import { evidenceStatus } from "../../evidence/handler.ts";
import type { Ledger } from "../../evidence/ledger.ts";
import { requireUpgrade } from "../../gateway/route.ts";
import type { PortRoutes, RouteHandlers } from "../../http/app.ts";
import { type Health, healthHandler } from "../../http/health.ts";
import type { LiveFeed } from "../../observe/live-feed.ts";
import type { Metrics } from "../../observe/metrics.ts";
import type { ProviderFleet } from "../../provider/fleet.ts";
import { showProvider } from "../../provider/view.ts";
import type { SessionDirectory, SessionView } from "../../session/session-directory.ts";
import type { UpstreamFleet } from "../../upstream/fleet.ts";
import type { UsageMeter } from "../../usage/meter.ts";
import { type AssetName, consoleAssets, readAsset } from "./assets.ts";

type AssetRoute = `console.asset.${AssetName}`;

/** A route for each asset. */
const assetRoutes = Object.fromEntries(
  consoleAssets.map(({ name }) => [
    `console.asset.${name}`,
    { method: "GET", path: `/assets/${name}`, access: "public" },
  ]),
) as Readonly<Record<AssetRoute, { readonly method: "GET"; readonly path: string; readonly access: "public" }>>;

/** The routes of the metrics port. */
export const consoleRoutes = {
  "dashboard.page": { method: "GET", path: "/", access: "public" },
  ...assetRoutes,
  // Requests to upgrade are served by `LiveEndpoint`.
  "dashboard.live": { method: "GET", path: "/v1/ws", access: "public" },
  "metrics.health": { method: "GET", path: "/health", access: "public" },
  "metrics.scrape": { method: "GET", path: "/metrics", access: "public" },
} as const satisfies PortRoutes;

interface ConsoleSources {
  readonly health: () => Health;
  readonly live: LiveFeed;
  readonly ledger: Ledger;
  readonly approvals: Approvals;
  readonly fleet: UpstreamFleet;
  readonly providers: ProviderFleet;
  readonly sessionDirectory: SessionDirectory;
  readonly metrics: Metrics;
  readonly meter: Pick<UsageMeter, "budgets">;
  readonly policies: () => readonly ActivePolicy[];
  /** The holder of the request's key; null where it has none. Throws KEY_UNKNOWN. */
  readonly callerOf: (rawHeaders: readonly string[]) => Principal | null;
}

/** Sources of this origin only, no framing, no markup from strings. */
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

/** Handlers of the console's page, its assets and data, and of scraping. */
export function consoleHandlers(sources: ConsoleSources): RouteHandlers<typeof consoleRoutes> {
  const overview = new SessionOverview(sources.sessionDirectory);
  const page = { type: "text/html; charset=utf-8", body: readAsset("index.html") };
  return {
    ...assetHandlers(),
    "dashboard.page": async (ctx) => {
      ctx.vary("accept");
      if (ctx.accepts("html", "json") !== "json") return sendAsset(ctx, page);
      const caller = sources.callerOf(ctx.req.rawHeaders);
      ctx.body = caller === null ? publicData(sources) : await tenantData(sources, overview, caller);
    },
    "dashboard.live": requireUpgrade,
    "metrics.health": healthHandler(sources.health),
    "metrics.scrape": async (ctx) => {
      const { type, text } = await sources.metrics.exposition(ctx.req.headers.accept);
      ctx.type = type;
      ctx.body = text;
    },
  };
}

/** No page of another origin holds a window of this one, loads a part of it, or lends it a device. */
const pageHeaders = {
  "content-security-policy": contentSecurity,
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy":
    "camera=(), clipboard-read=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
};

interface Asset {
  readonly type: string;
  readonly body: Buffer;
}

function sendAsset(ctx: Context, { type, body }: Asset): void {
  ctx.set(pageHeaders);
  ctx.type = type;
  ctx.body = body;
}

/** The handlers of the assets, which are read here, at the start. */
function assetHandlers(): Readonly<Record<AssetRoute, (ctx: Context) => void>> {
  const handlers = consoleAssets.map(({ name, type, file }) => {
    const asset = { type, body: readAsset(file) };
    return [`console.asset.${name}`, (ctx: Context) => sendAsset(ctx, asset)] as const;
  });
  return Object.fromEntries(handlers) as Record<AssetRoute, (ctx: Context) => void>;
}

const maxApprovals = 50;
const maxShadowDecisions = 100;

/** The data shown without a key, and a notice why there is no more. */
function publicData({ health }: ConsoleSources): object {
  const notice =
    "Protected views need an API key. This page neither asks for one nor keeps one: let a reverse proxy that has " +
    "authenticated you add it as `X-API-Key`.";
  return { service: health(), authentication: { required: true, notice } };
}

/** The current state of the caller's tenant, without arguments and outputs. */
async function tenantData(
  sources: ConsoleSources,
  overview: SessionOverview,
  { tenant, role }: Principal,
): Promise<object> {
  const { health, live, ledger, approvals, fleet, providers, metrics, meter, policies } = sources;
  return {
    service: health(),
    authentication: { required: true, tenant, role },
    decisions: live.latest(tenant),
    rates: live.summary(tenant),
    sessions: await overview.read(tenant),
    approvals: listLive(approvals.store, tenant, "pending", { limit: maxApprovals }).items.map(viewApproval),
    shadow_decisions: metrics.shadowLog.list(tenant, { limit: maxShadowDecisions }).items,
    upstreams: fleet.health(),
    providers: providers.health().map(showProvider),
    budgets: meter.budgets(tenant),
    evidence: evidenceStatus(ledger, tenant),
    extensions: policies(),
  };
}

function viewApproval({ id, action, evaluation, requested_at, expires_at, required, endorsements }: Approval): object {
  const { tool, target, capability, protocol } = action;
  const { risk, rules } = evaluation;
  const endorsed = endorsements.length;
  return { id, tool, target, capability, protocol, risk, rules, requested_at, expires_at, required, endorsed };
}

/** A result that is computed, or reused until `until` (monotonic, milliseconds). */
interface Shared {
  readonly sessions: Promise<readonly SessionView[]>;
  until: number;
}

const maxSessions = 20;
/** A result, or a failure, is reused for this multiple of its duration: computing takes at most a tenth of the time. */
const restFactor = 9;

/**
 * The sessions of a tenant with the highest risk. Finding them reads all sessions, 2 µs each: however many pages are
 * open, one search runs at a time for all of them, and no more often than its duration allows.
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
    const shared: Shared = { sessions: this.#find(tenant), until: Number.POSITIVE_INFINITY };
    this.#shared.set(tenant, shared);
    try {
      return await shared.sessions;
    } finally {
      const ended = this.#elapsedMs();
      shared.until = ended + restFactor * (ended - began);
    }
  }

  async #find(tenant: string): Promise<readonly SessionView[]> {
    return (await this.#directory.list(tenant, "risk", maxSessions)).items;
  }
}
