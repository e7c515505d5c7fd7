import { GatewayError } from "../kernel/error.ts";

export interface Page {
  readonly limit: number;
  readonly cursor?: string;
}

export const largestPage = 500;
export const usualPage = 50;
export const longestCursor = 512;
const cursorShape = /^[\x21-\x7e]{1,512}$/;

/** Throws INVALID_PARAMS. */
export function checkPage(limit: number, cursor: unknown): Page {
  if (!Number.isInteger(limit) || limit < 1 || limit > largestPage) {
    throw new GatewayError("INVALID_PARAMS", `expected \`limit\` to be an integer from 1 to ${largestPage}`);
  }
  if (cursor === undefined) return { limit };
  if (typeof cursor !== "string" || !cursorShape.test(cursor)) {
    throw new GatewayError("INVALID_PARAMS", "expected `cursor` to be the `next` of an earlier page");
  }
  return { limit, cursor };
}
