import { GatewayError } from "../action/error.ts";
import { asciiJson } from "../action/json.ts";
import { usageOperations } from "../usage/operation.ts";
import type { UsageDimension, UsageItem, UsagePage, UsageTotals } from "../usage/usage-report.ts";
import { type AdminOptions, fetchPages, type Values } from "./admin-client.ts";
import { print, say } from "./print.ts";
import { type Column, printTable } from "./table.ts";

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
export async function printUsage({ from, to, by, json, admin }: UsageOptions): Promise<void> {
  const report = await fetchReport({ admin }, { from, to, by: by.join(",") });
  if (json) return print(asciiJson(report));
  const { items, totals } = report;
  if (items.length === 0) return say(`nothing used from ${report.from} to ${report.to}`);
  const dimensions = by.map((name): Column<UsageItem> => ({ title: name, of: dimensionTexts[name] }));
  const sum = { ...totals, [by[0] ?? "day"]: "total", ...(by[0] === "principal" ? { key_id: null } : {}) };
  say(`from ${report.from} to ${report.to}`);
  printTable([...dimensions, ...counts], [...items, sum]);
}

/** Fetches every page and joins them. */
async function fetchReport(options: AdminOptions, values: Values): Promise<Report> {
  let report: Report | undefined;
  const items: UsageItem[] = [];
  for await (const page of fetchPages<UsageItem, UsagePage>(options, usageOperations.getUsage, values)) {
    const { items: more, next: _, ...rest } = page;
    items.push(...more);
    report = { ...rest, items };
  }
  if (report !== undefined) return report;
  throw new GatewayError("UPSTREAM_INVALID", "expected a page of usage, got none");
}
