import type { Context } from "koa";

/** The state of the service, for probes and load balancers. */
export interface Health {
  /** `degraded`: evidence cannot be written; actions are refused until it can. */
  readonly status: "ok" | "degraded" | "stopping";
  readonly version: string;
}

/**
 * 503 while stopping, else 200. A degraded gateway keeps its traffic, because the next action is what finds out that
 * evidence can be written again.
 */
export function healthStatus({ status }: Health): 200 | 503 {
  return status === "stopping" ? 503 : 200;
}

/** The handler of `/health`. */
export function healthHandler(health: () => Health): (ctx: Context) => void {
  return (ctx) => {
    const now = health();
    ctx.status = healthStatus(now);
    ctx.body = now;
  };
}
