import type { Context } from "koa";
import { GatewayError } from "../kernel/error.ts";

export interface Page {
  readonly limit: number;
  readonly cursor?: string;
}

const mostItems = 500;
const usualItems = 50;
const cursorShape = /^[\x21-\x7e]{1,512}$/;

/**
 * Reads `?limit=&cursor=`. Throws INVALID_PARAMS; a parameter that is unknown, and not among `others`, is a mistake the
 * caller should hear of.
 */
export function readPage(ctx: Context, others: readonly string[] = []): Page {
  for (const name of Object.keys(ctx.query)) {
    if (name !== "limit" && name !== "cursor" && !others.includes(name))
      throw new GatewayError("INVALID_PARAMS", `unknown parameter \`${name.slice(0, 64)}\``);
  }
  const limit = ctx.query.limit === undefined ? usualItems : Number(ctx.query.limit);
  return checkPage(limit, ctx.query.cursor);
}

/** Throws INVALID_PARAMS. */
export function checkPage(limit: number, cursor: unknown): Page {
  if (!Number.isInteger(limit) || limit < 1 || limit > mostItems) {
    throw new GatewayError("INVALID_PARAMS", `expected \`limit\` to be an integer from 1 to ${mostItems}`);
  }
  if (cursor === undefined) return { limit };
  if (typeof cursor !== "string" || !cursorShape.test(cursor)) {
    throw new GatewayError("INVALID_PARAMS", "expected `cursor` to be the `next` of an earlier page");
  }
  return { limit, cursor };
}
