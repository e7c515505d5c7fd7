import type { Context } from "koa";
import { GatewayError } from "../action/error.ts";
import type { Principal } from "../action/principal.ts";
import type { UsageAsked } from "../operation/request.ts";
import type { UsageMeter } from "./meter.ts";
import { addDays, type Day, dayOf } from "./usage-row.ts";

const maxDays = 31;

/** Answers what the caller's tenant used of models. Throws INVALID_PARAMS for days that are none, or too many. */
export async function showUsage(
  meter: UsageMeter,
  ctx: Context,
  { tenant }: Principal,
  { from, to, ...asked }: UsageAsked,
): Promise<void> {
  const last = to === undefined ? meter.today : checkDay("to", to);
  const first = from === undefined ? addDays(last, 1 - maxDays) : checkDay("from", from);
  checkSpan(first, last);
  ctx.body = await meter.page(tenant, { ...asked, from: first, to: last });
}

/** Two texts as the days that a report is about. Throws INVALID_PARAMS. */
export function checkUsageDays(from: string, to: string): { readonly from: Day; readonly to: Day } {
  const days = { from: checkDay("from", from), to: checkDay("to", to) };
  checkSpan(days.from, days.to);
  return days;
}

function checkSpan(from: Day, to: Day): void {
  if (from <= to && from >= addDays(to, 1 - maxDays)) return;
  throw new GatewayError("INVALID_PARAMS", `expected \`from\` to be at most ${maxDays - 1} days before \`to\``);
}

function checkDay(name: string, value: unknown): Day {
  if (typeof value === "string" && /^20\d\d-\d\d-\d\d$/.test(value)) {
    const ms = Date.parse(value);
    if (!Number.isNaN(ms) && dayOf(ms) === value) return value;
  }
  throw new GatewayError("INVALID_PARAMS", `expected \`${name}\` to be a day like \`2026-11-22\``);
}
