import type { JsonObject } from "../../kernel/json.ts";
import { largestPage, longestCursor, usualPage } from "../page.ts";
import type { PathParameter, QueryParameter } from "./operation.ts";

const limit: QueryParameter = {
  schema: {
    type: "integer",
    minimum: 1,
    maximum: largestPage,
    default: usualPage,
    description: `an integer from 1 to ${largestPage}: the items of a page`,
  },
};

const cursor: QueryParameter = {
  schema: {
    type: "string",
    pattern: `^[\\x21-\\x7e]{1,${longestCursor}}$`,
    description: "the `next` of an earlier page",
  },
};

/** What every list takes. */
export const paging: Readonly<Record<"limit" | "cursor", QueryParameter>> = { limit, cursor };

/** What lists of approvals take: their cursors are ids. */
export const approvalPaging: typeof paging = {
  limit,
  cursor: { schema: { type: "string", pattern: "^apr_[0-9a-f]{32}$", description: "the `next` of an earlier page" } },
};

function named(noun: string, pattern: string, absent: string = `no such ${noun}`): PathParameter {
  return { description: `The id of the ${noun}.`, schema: { type: "string", pattern }, absent };
}

export const approvalId: PathParameter = named("approval", "^apr_[0-9a-f]{32}$");
export const decisionId: PathParameter = named(
  "decision",
  "^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$",
);
export const sessionId: PathParameter = named("session", "^session-v1-[0-9a-f]{64}$");
export const ticketId: PathParameter = named("ticket", "^tkt_[0-9a-f]{32}$");
export const taskName: PathParameter = named("manifest", "^[a-z0-9][a-z0-9._-]{0,63}$");
export const letterId: PathParameter = named(
  "dead letter",
  "^[A-Za-z0-9_-]{1,64}$",
  "no such dead letter, or its webhook is configured no more",
);

/** A list of one parameter, parted by commas. */
export function someOf(all: readonly string[], description: string): QueryParameter {
  const schema: JsonObject = {
    type: "array",
    items: { type: "string", enum: all },
    minItems: 1,
    uniqueItems: true,
    default: all,
    description,
  };
  return { schema };
}

/** One word out of several; `usual` where it is left out. */
export function choice(all: readonly string[], usual?: string): QueryParameter {
  return {
    schema: {
      type: "string",
      enum: all,
      description: `one of ${all.map((word) => `\`${word}\``).join(", ")}`,
      ...(usual === undefined ? {} : { default: usual }),
    },
  };
}
