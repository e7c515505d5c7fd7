import { isLoopback } from "../../config/loopback.ts";
import { type Examine, fail, ok, warn } from "./finding.ts";

/** Who can reach the ports at all. Without keys the configuration is refused before this. */
export const examineExposure: Examine = async ({ config: { listen } }) => {
  const found = [];
  if (!isLoopback(listen.host)) {
    const mend = "put a proxy with TLS in front, as core/cli/deploy shows, and let only it reach this port";
    found.push(warn(`agents reach \`${listen.host}\` in plain HTTP: keys are readable on the way`, mend));
  }
  if (!isLoopback(listen.adminHost)) {
    const mend = "set `listen.admin_host` to 127.0.0.1, or keep the port off every public network";
    const text = `operators reach \`${listen.adminHost}\` in plain HTTP: whoever reads a key on the way can review`;
    found.push(
      isWildcard(listen.adminHost) ? fail(`${text}, from every network of this machine`, mend) : warn(text, mend),
    );
  }
  return found.length === 0 ? [ok("this machine alone reaches the ports")] : found;
};

function isWildcard(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}
