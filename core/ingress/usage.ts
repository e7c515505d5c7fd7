import type { Context } from "koa";
import { GatewayError } from "../kernel/error.ts";
import type { Principal } from "../kernel/principal.ts";
import { addDays, type Day, dayOf } from "../usage/day.ts";
import type { UsageMeter } from "../usage/meter.ts";
import { type UsageDimension, usageDimensions } from "../usage/usage-report.ts";
import { readPage } from "./page.ts";

const mostDays = 31;

/** Answers what the caller's tenant used of models: `?from=&to=&by=&limit=&cursor=`. Throws INVALID_PARAMS. */
export async function showUsage(meter: UsageMeter, ctx: Context, { tenant }: Principal): Promise<void> {
  const page = readPage(ctx, ["from", "to", "by"]);
  const to = readDay(ctx, "to") ?? meter.today;
  const from = readDay(ctx, "from") ?? addDays(to, 1 - mostDays);
  checkSpan(from, to);
  ctx.body = await meter.page(tenant, { ...page, from, to, by: readDimensions(ctx) });
}

/** Two texts as the days that a report is about. Throws INVALID_PARAMS. */
export function checkUsageDays(from: string, to: string): { readonly from: Day; readonly to: Day } {
  const days = { from: checkDay("from", from), to: checkDay("to", to) };
  checkSpan(days.from, days.to);
  return days;
}

function checkSpan(from: Day, to: Day): void {
  if (from <= to && from >= addDays(to, 1 - mostDays)) return;
  throw new GatewayError("INVALID_PARAMS", `expected \`from\` to be at most ${mostDays - 1} days before \`to\``);
}

function readDay(ctx: Context, name: "from" | "to"): Day | undefined {
  const value = ctx.query[name];
  return value === undefined ? undefined : checkDay(name, value);
}

function checkDay(name: string, value: unknown): Day {
  if (typeof value === "string" && /^20\d\d-\d\d-\d\d$/.test(value)) {
    const ms = Date.parse(value);
    if (!Number.isNaN(ms) && dayOf(ms) === value) return value;
  }
  throw new GatewayError("INVALID_PARAMS", `expected \`${name}\` to be a day like \`2026-11-22\``);
}

function readDimensions(ctx: Context): readonly UsageDimension[] {
  const { by } = ctx.query;
  if (by === undefined) return usageDimensions;
  const names = typeof by === "string" ? by.split(",") : [];
  const known = usageDimensions.filter((dimension) => names.includes(dimension));
  if (known.length > 0 && known.length === names.length) return known;
  throw new GatewayError("INVALID_PARAMS", `expected \`by\` to be some of ${usageDimensions.join(",")}, each once`);
}
