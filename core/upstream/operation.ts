import type { JsonObject } from "../action/json.ts";
import type { Operations, QueryParameter } from "../operation/operation.ts";
import { letterId, paging, someOf } from "../operation/request.ts";
import {
  answers,
  anyObject,
  anyText,
  count,
  flag,
  list,
  nullable,
  object,
  oneOf,
  page,
  texts,
  time,
} from "../operation/shape.ts";
import { usageDimensions } from "../usage/usage-report.ts";

type TrafficRouteId = "admin.usage" | "admin.upstreams" | "admin.providers" | "admin.dead_letters" | "admin.redeliver";

const dayOut: JsonObject = { type: "string", format: "date" };
const totals = { requests: count, input_tokens: count, output_tokens: count, cached_input_tokens: count };
const by = { day: dayOut, principal: anyText, key_id: nullable(anyText), provider: anyText, model: anyText };
const usage = page(object({ ...by, ...totals }, Object.keys(by)), {
  from: dayOut,
  to: dayOut,
  totals: object(totals),
});

const upstream = object(
  {
    name: anyText,
    transport: oneOf(["stdio", "http", "sse"]),
    state: oneOf(["idle", "up", "down"]),
    connections: count,
    failures: count,
    reason: anyText,
  },
  ["reason"],
);

const provider = object({
  name: anyText,
  type: oneOf(["mock", "openai", "anthropic"]),
  enabled: flag,
  models: texts,
  routes: texts,
  breaker: oneOf(["closed", "open", "half_open"]),
  failures: count,
  rests_for_ms: count,
  requests_in_flight: count,
  last_fault: nullable(anyText),
});

const letter = object({
  id: anyText,
  webhook: anyText,
  type: anyText,
  time,
  given_up_at: time,
  reason: oneOf(["refused", "exhausted", "overflow", "removed"]),
  attempts: count,
  status: nullable(count),
  data: anyObject,
});

function day(usual: string): QueryParameter {
  return {
    schema: { type: "string", pattern: "^20\\d\\d-\\d\\d-\\d\\d$", description: `a day like \`2026-11-22\`; ${usual}` },
  };
}

function all(items: JsonObject): JsonObject {
  return object({ items: list(items), next: { type: "null" } });
}

/** What goes through the gateway, and how those fare whom it talks to. */
export const trafficOperations: Operations<TrafficRouteId> = {
  "admin.usage": {
    name: "getUsage",
    subject: "traffic",
    summary: "What the tenant used of models, over at most 31 days",
    query: {
      from: day("30 days before `to` where it is left out"),
      to: day("today where it is left out"),
      by: someOf(usageDimensions, `some of ${usageDimensions.join(",")}, each once`),
      ...paging,
    },
    answer: answers("A page of counts, and the totals of all pages.", usage),
    refusals: [],
  },
  "admin.upstreams": {
    name: "listUpstreams",
    subject: "traffic",
    summary: "The upstreams and how they fare",
    answer: answers("All of them.", all(upstream)),
    refusals: [],
  },
  "admin.providers": {
    name: "listProviders",
    subject: "traffic",
    summary: "The model providers and how they fare",
    answer: answers("All of them.", all(provider)),
    refusals: [],
  },
  "admin.dead_letters": {
    name: "listDeadLetters",
    subject: "traffic",
    summary: "What the tenant's webhooks were never told, the latest first",
    query: paging,
    answer: answers("A page of dead letters.", page(letter)),
    refusals: [],
  },
  "admin.redeliver": {
    name: "redeliver",
    subject: "traffic",
    summary: "Has a dead letter delivered again",
    params: { id: letterId },
    answer: answers("Its id.", object({ id: anyText })),
    refusals: ["EVIDENCE_UNAVAILABLE"],
  },
};
