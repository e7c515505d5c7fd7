import type { Context } from "koa";
import type { Custody } from "../evidence/custody.ts";
import type { SessionExport } from "../evidence/session-export.ts";
import type { StandingPolicy } from "../kernel/policy.ts";
import type { Principal } from "../kernel/principal.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { TrialLog } from "../observe/trial-log.ts";
import type { ProviderFleet } from "../provider/fleet.ts";
import type { UpstreamFleet } from "../upstream/fleet.ts";
import type { UsageMeter } from "../usage/meter.ts";
import type { EvidenceRouteId } from "./api/evidence.ts";
import type { AdminHandlers } from "./api/handler.ts";
import { pluginsOf } from "./plugin-view.ts";
import { showProvider } from "./provider-view.ts";
import { sendBundle, sendReport } from "./session-export.ts";
import { showSession } from "./session-view.ts";
import { showUsage } from "./usage.ts";
import { listDeadLetters, redeliver, type WebhookParts } from "./webhook.ts";

export interface AdminParts extends WebhookParts {
  readonly custody: Custody;
  readonly exporter: SessionExport;
  readonly fleet: UpstreamFleet;
  readonly providers: ProviderFleet;
  readonly meter: UsageMeter;
  readonly trials: Pick<TrialLog, "list">;
  readonly policies: () => readonly StandingPolicy[];
}

type OwnRouteId =
  | EvidenceRouteId
  | "admin.policies"
  | "admin.plugins"
  | "admin.would_have"
  | "admin.usage"
  | "admin.upstreams"
  | "admin.providers"
  | "admin.dead_letters"
  | "admin.redeliver";

/** Handlers of the admin port. Every answer is the caller's tenant only. */
export function adminHandlers(parts: AdminParts): AdminHandlers<OwnRouteId> {
  return {
    "admin.sessions": async (ctx, caller, { query }) => {
      ctx.body = await parts.ledger.sessions(caller.tenant, query);
    },
    "admin.session": (ctx, caller, asked) => showSession(parts.ledger, ctx, caller, asked),
    "admin.export": (ctx, caller, asked) => sendBundle(parts.exporter, ctx, caller, asked),
    "admin.report": (ctx, caller, asked) => sendReport(parts.exporter, ctx, caller, asked),
    "admin.verify": (ctx, caller) => verifyChain(parts, ctx, caller),
    "admin.evidence_verify": (ctx, caller) => verifyEvidence(parts, ctx, caller),
    "admin.checkpoint": async (ctx, caller) => {
      ctx.body = await parts.custody.checkpoint(caller.tenant);
    },
    "admin.keys": async (ctx, caller) => {
      ctx.body = await parts.custody.keys(caller.tenant);
    },
    "admin.rotate": (ctx, caller) => rotateKey(parts, ctx, caller),
    "admin.policies": (ctx) => {
      ctx.body = { items: parts.policies(), next: null };
    },
    "admin.plugins": (ctx) => {
      ctx.body = { items: pluginsOf(parts.policies()), next: null };
    },
    "admin.would_have": (ctx, caller, { query }) => {
      ctx.body = parts.trials.list(caller.tenant, query);
    },
    "admin.usage": (ctx, caller, { query }) => showUsage(parts.meter, ctx, caller, query),
    "admin.upstreams": (ctx) => {
      ctx.body = { items: parts.fleet.health(), next: null };
    },
    "admin.providers": (ctx) => {
      ctx.body = { items: parts.providers.health().map(showProvider), next: null };
    },
    "admin.dead_letters": (ctx, caller, { query }) => listDeadLetters(parts, ctx, caller, query),
    "admin.redeliver": (ctx, caller, { id }) => redeliver(parts, ctx, caller, id),
  };
}

/** Checks the caller's chain from its first record. */
async function verifyChain(parts: AdminParts, ctx: Context, caller: Principal): Promise<void> {
  const report = await parts.ledger.verify(caller.tenant);
  if (report.ok) await recordVerification(parts, caller, "audit.verify");
  ctx.body = report;
}

/** The same, and what every witness says of the chain. One that contradicts it is believed. */
async function verifyEvidence(parts: AdminParts, ctx: Context, caller: Principal): Promise<void> {
  const report = await parts.ledger.verify(caller.tenant);
  const witnesses = await parts.custody.ask(caller.tenant);
  const contradicted = witnesses.some(({ verdict }) => verdict === "behind" || verdict === "forked");
  if (report.ok && !contradicted) await recordVerification(parts, caller, "evidence.verify");
  ctx.body = { ...report, ok: report.ok && !contradicted, witnesses };
}

/** Hands the caller's chain over to a new key. Who asked for it is on record with it. */
async function rotateKey({ ledger }: AdminParts, ctx: Context, caller: Principal): Promise<void> {
  const { tenant, id } = caller;
  ctx.body = { tenant, key_id: await ledger.rotateKey(tenant, { action: "evidence.rotate", principal: id }) };
}

/** Puts on record who asked. A chain that is not sound takes no record any more: the answer alone says so. */
function recordVerification({ ledger }: AdminParts, caller: Principal, action: string): Promise<void> {
  return ledger.recordEvent(caller.tenant, "admin", { action, principal: caller.id, ok: true });
}

/** The exposition text that a scraper reads. */
export function metricsHandler(metrics: Metrics): (ctx: Context) => Promise<void> {
  return async (ctx) => {
    const { type, text } = await metrics.exposition(ctx.req.headers.accept);
    ctx.type = type;
    ctx.body = text;
  };
}
