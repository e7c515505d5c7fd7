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

/** Admin operations on traffic: model usage, upstreams, providers and undelivered notifications. */
export const trafficOperations: Operations<TrafficRouteId> = {
  "admin.usage": {
    name: "getUsage",
    subject: "traffic",
    summary: "Report the tenant's model usage, over at most 31 days",
    query: {
      from: day("30 days before `to` by default"),
      to: day("today by default"),
      by: someOf(usageDimensions, `some of ${usageDimensions.join(",")}, each once`),
      ...paging,
    },
    answer: answers("A page of counts, and the totals of all pages.", usage),
    refusals: [],
  },
  "admin.upstreams": {
    name: "listUpstreams",
    subject: "traffic",
    summary: "List the upstreams and their health",
    answer: answers("All of them.", all(upstream)),
    refusals: [],
  },
  "admin.providers": {
    name: "listProviders",
    subject: "traffic",
    summary: "List the model providers and their health",
    answer: answers("All of them.", all(provider)),
    refusals: [],
  },
  "admin.dead_letters": {
    name: "listDeadLetters",
    subject: "traffic",
    summary: "List the tenant's undelivered notifications, newest first",
    query: paging,
    answer: answers("A page of dead letters.", page(letter)),
    refusals: [],
  },
  "admin.redeliver": {
    name: "redeliver",
    subject: "traffic",
    summary: "Deliver a dead letter again",
    params: { id: letterId },
    answer: answers("Its id.", object({ id: anyText })),
    refusals: ["EVIDENCE_UNAVAILABLE"],
  },
};
