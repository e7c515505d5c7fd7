import type { Context } from "koa";
import type { Ledger } from "../evidence/ledger.ts";
import type { PolicyRef } from "../kernel/policy.ts";
import type { Principal } from "../kernel/principal.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { UpstreamFleet } from "../upstream/fleet.ts";
import type { Handler } from "./app.ts";
import { readPage } from "./page.ts";

export interface AdminParts {
  readonly ledger: Ledger;
  readonly fleet: UpstreamFleet;
  readonly policies: () => readonly PolicyRef[];
}

/** Handlers of the admin port. Every answer is the caller's tenant only. */
export interface AdminHandlers {
  readonly sessions: Handler;
  readonly session: Handler;
  readonly verify: Handler;
  readonly policies: Handler;
  readonly upstreams: Handler;
}

export function adminHandlers(parts: AdminParts): AdminHandlers {
  return {
    sessions: async (ctx, caller) => {
      ctx.body = await parts.ledger.sessions(caller.tenant, readPage(ctx));
    },
    session: async (ctx, caller) => {
      ctx.body = await parts.ledger.records(caller.tenant, ctx.params.id as string, readPage(ctx));
    },
    verify: (ctx, caller) => verifyChain(parts, ctx, caller),
    policies: (ctx) => {
      ctx.body = { items: parts.policies(), next: null };
    },
    upstreams: (ctx) => {
      ctx.body = { items: parts.fleet.health(), next: null };
    },
  };
}

/** Checks the caller's chain from its first record, and puts on record who asked and what came of it. */
async function verifyChain(parts: AdminParts, ctx: Context, caller: Principal): Promise<void> {
  const report = await parts.ledger.verify(caller.tenant);
  await parts.ledger.recordEvent(caller.tenant, "admin", {
    action: "audit.verify",
    principal: caller.id,
    ok: report.ok,
  });
  ctx.body = report;
}

/** The exposition text that a scraper reads. */
export function metricsHandler(metrics: Metrics): (ctx: Context) => Promise<void> {
  return async (ctx) => {
    ctx.type = metrics.contentType;
    ctx.body = await metrics.text();
  };
}
