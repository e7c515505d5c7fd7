import type { Context, Next } from "koa";
import { asciiJson } from "../kernel/ascii-json.ts";

/**
 * Answers JSON in printable ASCII: names, reasons and messages are written by agents, upstreams and people, and whoever
 * looks at them with bare eyes must not be misled, nor their terminal driven. It reads back as the same values.
 */
export async function answerPrintably(ctx: Context, next: Next): Promise<void> {
  await next();
  const { body } = ctx;
  if (typeof body !== "object" || body === null || Buffer.isBuffer(body)) return;
  ctx.body = asciiJson(body);
}
