import type { GatewayConfig } from "../config/gateway-config.ts";
import type { Ledger } from "../evidence/ledger.ts";
import type { GatewayClock } from "../observe/gateway-clock.ts";
import type { Log } from "../observe/log.ts";
import type { Metrics } from "../observe/metrics.ts";
import { ReportDatabase } from "../report/database.ts";
import { ReportFeeder } from "../report/feeder.ts";
import type { Store } from "../store/open.ts";
import type { UsageMeter } from "../usage/meter.ts";
import { elapsedMs } from "./identity.ts";

interface ReportNeeds {
  readonly store: Store;
  readonly ledger: Ledger;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly meter: UsageMeter;
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
