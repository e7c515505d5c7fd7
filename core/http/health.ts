import type { Context } from "koa";

/** Whether the service can do its work, for probes and load balancers. */
export interface Health {
  /** `degraded`: evidence cannot be written, so no action is served until it can. */
  readonly status: "ok" | "degraded" | "stopping";
  readonly version: string;
}

/**
 * GET and HEAD `/health`: 503 while stopping, else 200. A degraded gateway keeps its traffic, because it is the next
 * action that tries whether evidence can be written again. Runs nothing.
 */
export function healthHandler(health: () => Health): (ctx: Context) => void {
  return (ctx) => {
    const now = health();
    ctx.status = now.status === "stopping" ? 503 : 200;
    ctx.body = now;
  };
}
