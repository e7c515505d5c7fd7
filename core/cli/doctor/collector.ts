import { type Examine, ok, warn } from "./finding.ts";
import { examineHost } from "./reach.ts";

/** Whether the collector of traces and metrics can be connected to. */
export const examineCollector: Examine = async ({ config: { telemetry } }) => {
  if (telemetry.endpoint === null) return [ok("nobody is told of traces and metrics")];
  return [await examineHost("telemetry", telemetry.endpoint, warn)];
};
