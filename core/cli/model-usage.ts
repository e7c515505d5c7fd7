import { Command, InvalidArgumentError } from "commander";
import { GatewayError } from "../action/error.ts";
import { asciiJson } from "../action/json.ts";
import type { UsageDimension, UsageItem, UsagePage, UsageTotals } from "../usage/usage-report.ts";
import { usageDimensions } from "../usage/usage-report.ts";
import { type AdminOptions, adminOption } from "./admin-client.ts";
import { askPages, type Column, printTable } from "./list.ts";
import { print, say } from "./print.ts";

interface UsageOptions extends AdminOptions {
  readonly from?: string;
  readonly to?: string;
  readonly by: readonly UsageDimension[];
  readonly json?: true;
}

type Report = Omit<UsagePage, "next">;

const dimensionTexts: Readonly<Record<UsageDimension, (item: UsageItem) => string>> = {
  day: ({ day }) => day ?? "",
  principal: ({ key_id: key, principal }) => key ?? principal ?? "",
  provider: ({ provider }) => provider ?? "",
  model: ({ model }) => model ?? "",
};

const counts: readonly Column<UsageTotals>[] = [
  { title: "requests", isNumber: true, of: ({ requests }) => requests },
  { title: "input", isNumber: true, of: ({ input_tokens: input }) => input },
  { title: "cached", isNumber: true, of: ({ cached_input_tokens: cached }) => cached },
  { title: "output", isNumber: true, of: ({ output_tokens: output }) => output },
];

/** `gateway usage`. */
export function usageCommand(): Command {
  return new Command("usage")
    .description("print what your tenant used of models: requests, and tokens")
    .option("--from <day>", "first day, like 2026-11-01, in UTC (default: 30 days before the last)", parseDay)
    .option("--to <day>", "last day (default: today)", parseDay)
    .option("--by <dimensions>", `some of ${usageDimensions.join(",")}`, parseDimensions, usageDimensions)
    .addOption(adminOption())
    .option("--json", "print JSON, all in one object")
    .action(showUsage);
}

async function showUsage({ from, to, by, json, admin }: UsageOptions): Promise<void> {
  const days = { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) };
  const report = await askReport({ admin }, { ...days, by: by.join(",") });
  if (json) return print(asciiJson(report));
  const { items, totals } = report;
  if (items.length === 0) return say(`nothing used from ${report.from} to ${report.to}`);
  const named = by.map((name): Column<UsageItem> => ({ title: name, of: dimensionTexts[name] }));
  const sum = { ...totals, [by[0] ?? "day"]: "total", ...(by[0] === "principal" ? { key_id: null } : {}) };
  say(`from ${report.from} to ${report.to}`);
  printTable([...named, ...counts], [...items, sum]);
}

/** Every page as one. */
async function askReport(options: AdminOptions, query: Readonly<Record<string, string>>): Promise<Report> {
  let report: Report | undefined;
  const items: UsageItem[] = [];
  for await (const { items: more, next: _, ...rest } of askPages<UsageItem, UsagePage>(options, "/admin/v1/usage", {
    query,
  })) {
    items.push(...more);
    report = { ...rest, items };
  }
  if (report !== undefined) return report;
  throw new GatewayError("UPSTREAM_INVALID", "expected a page of usage, got none");
}

function parseDay(text: string): string {
  const ms = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text)) return text;
  throw new InvalidArgumentError("expected a day like `2026-11-01`");
}

/** In the order in which the gateway sorts by them. */
function parseDimensions(text: string): readonly UsageDimension[] {
  const names = text.split(",");
  const known = usageDimensions.filter((dimension) => names.includes(dimension));
  if (known.length === names.length) return known;
  throw new InvalidArgumentError(`expected some of ${usageDimensions.join(",")}, each once`);
}
