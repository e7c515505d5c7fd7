import type { TOptional, TProperties, TString } from "@sinclair/typebox";
import { GatewayError } from "../action/error.ts";
import { Type } from "../config/type.ts";
import type { AdminHandlers, AdminOperations } from "../operation/operation.ts";
import {
  anyText,
  closed,
  jsonResponse,
  matching,
  nullable,
  page,
  paging,
  someOf,
  wholeNumber,
} from "../operation/shape.ts";
import type { UsageMeter } from "./meter.ts";
import { usageDimensions } from "./usage-report.ts";
import { addDays, type Day, dayOf } from "./usage-row.ts";

const maxDays = 31;

const day = Type.String({ format: "date" });
const totals = {
  requests: wholeNumber,
  input_tokens: wholeNumber,
  output_tokens: wholeNumber,
  cached_input_tokens: wholeNumber,
};
const item = Type.Object({
  ...Type.Partial(
    Type.Object({ day, principal: anyText, key_id: nullable(anyText), provider: anyText, model: anyText }),
  ).properties,
  ...totals,
});

function dayQuery(usual: string): TOptional<TString> {
  return Type.Optional(matching("^20\\d\\d-\\d\\d-\\d\\d$", `a day like \`2026-11-22\`; ${usual}`));
}

/** Use of models. */
export const usageOperations = {
  getUsage: {
    id: "admin.usage",
    method: "GET",
    path: "/admin/v1/usage",
    access: "usage.read",
    tag: "traffic",
    summary: "Report the tenant's use of models, over at most 31 days",
    query: closed({
      from: dayQuery("30 days before `to` by default"),
      to: dayQuery("today by default"),
      by: someOf(usageDimensions, `some of ${usageDimensions.join(",")}, each once`),
      ...paging,
    }),
    response: jsonResponse(
      "A page of counts, and the totals of all pages.",
      page(item, { from: day, to: day, totals: Type.Object(totals) } satisfies TProperties),
    ),
    errors: [],
  },
} as const satisfies AdminOperations;

/** The handler of the usage report. Throws INVALID_PARAMS for days that do not exist, or too many. */
export function usageHandlers({ meter }: { readonly meter: UsageMeter }): AdminHandlers<typeof usageOperations> {
  return {
    getUsage: ({ tenant }, { query: { from, to = meter.today, ...query } }) => {
      const period = readPeriod(from ?? addDays(readDay("to", to), 1 - maxDays), to);
      return meter.page(tenant, { ...query, ...period });
    },
  };
}

/** The days of a report, both included. Throws INVALID_PARAMS. */
export function readPeriod(from: string, to: string): { readonly from: Day; readonly to: Day } {
  const period = { from: readDay("from", from), to: readDay("to", to) };
  if (period.from <= period.to && period.from >= addDays(period.to, 1 - maxDays)) return period;
  throw new GatewayError("INVALID_PARAMS", `expected \`from\` to be at most ${maxDays - 1} days before \`to\``);
}

function readDay(name: string, value: unknown): Day {
  if (typeof value === "string" && /^20\d\d-\d\d-\d\d$/.test(value)) {
    const ms = Date.parse(value);
    if (!Number.isNaN(ms) && dayOf(ms) === value) return value;
  }
  throw new GatewayError("INVALID_PARAMS", `expected \`${name}\` to be a day like \`2026-11-22\``);
}
