import type { Context } from "koa";
import type { GatewayError } from "../kernel/error.ts";

/** Answers an error as RFC 9457 problem+json. The cause stays in the log, under the same request id.
 * Where waiting helps, `Retry-After` says for how long. */
export function answerProblem(ctx: Context, error: GatewayError, requestId: string): void {
  ctx.status = error.row.status;
  ctx.type = "application/problem+json";
  const { retry_after_s: seconds } = error.data ?? {};
  if (error.row.expose && typeof seconds === "number") ctx.set("retry-after", String(seconds));
  ctx.body = {
    type: "about:blank",
    title: error.row.text,
    status: error.row.status,
    detail: error.publicMessage,
    code: error.code,
    request_id: requestId,
    ...(error.row.expose && error.data !== undefined ? { data: error.data } : {}),
  };
}
