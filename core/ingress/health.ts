import type { Context } from "koa";

/** Whether the service can do its work, for probes and load balancers. */
export interface Health {
  readonly status: "ok" | "degraded" | "stopping";
  readonly version: string;
}

/** GET and HEAD `/health`: 200 while actions can be served, 503 while none can. Runs nothing. */
export function healthHandler(health: () => Health): (ctx: Context) => void {
  return (ctx) => {
    const now = health();
    ctx.status = now.status === "stopping" ? 503 : 200;
    ctx.body = now;
  };
}
