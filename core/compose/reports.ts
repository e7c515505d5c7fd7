import type { GatewayConfig } from "../config/gateway-config.ts";
import type { GatewayClock } from "../observe/gateway-clock.ts";
import { ReportDatabase } from "../report/database.ts";
import { ReportFeeder } from "../report/feeder.ts";
import type { Parts } from "./compose.ts";
import { elapsedMs } from "./identity.ts";

interface ReportNeeds extends Pick<Parts, "store" | "ledger" | "log" | "metrics" | "meter"> {
  readonly clock: GatewayClock;
}

/** Makes the feeder of the report database, which connects once it is started; null where none is configured. */
export async function openReports(
  { reports }: GatewayConfig,
  { store, ledger, log, metrics, meter, clock }: ReportNeeds,
): Promise<ReportFeeder | null> {
  if (reports === null) return null;
  return new ReportFeeder({
    database: await ReportDatabase.load(reports.url),
    store,
    status: () => ledger.status(),
    usage: (...period) => meter.rows(...period),
    clock: clock.now,
    elapsedMs,
    onBacklog: (records) => metrics.reports.backlog(records),
    onWarning: (message, fields) => log.warn(fields, message),
    onResumed: () => log.info("reports_resumed"),
  });
}
