import type { Context } from "koa";

/** The state of the service, for probes and load balancers. */
export interface Health {
  /**
   * `degraded`: evidence cannot be written; actions are refused until it can. `fenced`: this replica could not renew its lease, so
   * another one may own the store; actions are refused until it owns the store again.
   */
  readonly status: "ok" | "degraded" | "fenced" | "stopping";
  readonly version: string;
}

/**
 * 503 while stopping or fenced, else 200. A degraded gateway keeps its traffic, because the next action is what finds out that
 * evidence can be written again. A fenced one does not: its lease is renewed without any traffic, and other replicas may serve.
 */
export function healthStatus({ status }: Health): 200 | 503 {
  return status === "stopping" || status === "fenced" ? 503 : 200;
}

/** The handler of `/health`. */
export function healthHandler(health: () => Health): (ctx: Context) => void {
  return (ctx) => {
    const now = health();
    ctx.status = healthStatus(now);
    ctx.body = now;
  };
}
