import { contentDigest } from "../../action/canonical-json.ts";
import { GatewayError } from "../../action/error.ts";
import { isLoopback } from "../../config/repetition.ts";
import { checkBackups } from "./backup.ts";
import { checkSignIn } from "./console.ts";
import { checkData } from "./data-folder.ts";
import { checkDatabase, checkReports } from "./database.ts";
import { checkEnforcement } from "./enforcement.ts";
import { type DoctorCheck, type DoctorFinding, type DoctorTarget, fail, ok, quantity, warn } from "./finding.ts";
import { checkClock, checkDisk, checkOpenFiles, checkSync } from "./machine.ts";
import { checkMark } from "./mark.ts";
import {
  checkCollector,
  checkIssuer,
  checkModelProviders,
  checkProcessUser,
  checkUpstreams,
  checkWebhooks,
  checkWitnesses,
} from "./peer.ts";
import { checkPermissions } from "./permission.ts";
import { checkPorts } from "./port.ts";
import { checkExtensions, checkTrust } from "./trust.ts";

/** A finding, and the check that made it. */
export interface CheckResult extends DoctorFinding {
  readonly check: string;
}

/** Every check that needs a configuration, in the order of the report. */
export const checks: Readonly<Record<string, DoctorCheck>> = {
  ports: checkPorts,
  exposure: checkExposure,
  keys: checkKeys,
  oauth: checkIssuer,
  console: checkSignIn,
  permissions: checkPermissions,
  "open files": checkOpenFiles,
  clock: checkClock,
  disk: checkDisk,
  "disk sync": checkSync,
  data: checkData,
  database: checkDatabase,
  mark: checkMark,
  backups: checkBackups,
  extensions: checkExtensions,
  trust: checkTrust,
  enforcement: checkEnforcement,
  upstreams: checkUpstreams,
  "server user": checkProcessUser,
  providers: checkModelProviders,
  webhooks: checkWebhooks,
  collector: checkCollector,
  witnesses: checkWitnesses,
  reports: checkReports,
};

const maxCheckMs = 30_000;

/** Runs all checks, one after the other. One that throws, or takes longer than `timeoutMs`, has failed. */
export async function runChecks(target: DoctorTarget, timeoutMs: number = maxCheckMs): Promise<readonly CheckResult[]> {
  const results: CheckResult[] = [];
  for (const [check, run] of Object.entries(checks)) {
    const findings = await withTimeout(run(target), timeoutMs).catch((cause) => [
      fail(`cannot be checked: ${GatewayError.from(cause).message}`, "fix that first"),
    ]);
    results.push(...findings.map((finding) => ({ check, ...finding })));
  }
  return results;
}

async function withTimeout<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end within ${timeoutMs} ms`)), timeoutMs);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/** Checks from where the ports can be reached. Without keys the configuration is refused earlier. */
export async function checkExposure({ config: { listen } }: DoctorTarget): Promise<readonly DoctorFinding[]> {
  const found: DoctorFinding[] = [];
  if (!isLoopback(listen.host)) {
    const fix = "put a proxy with TLS in front, as core/cli/deploy shows, and let only it reach this port";
    found.push(warn(`agents reach \`${listen.host}\` in plain HTTP: keys are readable on the network`, fix));
  }
  if (!isLoopback(listen.adminHost)) {
    const fix = "set `listen.admin_host` to 127.0.0.1, or keep the port off every public network";
    const text = `operators reach \`${listen.adminHost}\` in plain HTTP: a key read on the network can review`;
    found.push(
      isWildcard(listen.adminHost) ? fail(`${text}, from every network of this machine`, fix) : warn(text, fix),
    );
  }
  return found.length === 0 ? [ok("only this machine reaches the ports")] : found;
}

function isWildcard(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}

/** Checks that every tenant has a reviewer's key, and that every caller needs a key. */
export async function checkKeys({ config, env }: DoctorTarget): Promise<readonly DoctorFinding[]> {
  const { keys, source, mcpGateway } = config;
  if (keys.length === 0 && source === null) return [ok("two are created at the first start")];
  if (keys.length === 0) {
    return [
      fail("none is configured: nobody can authenticate", "`gateway keys new` prints one, and its entry for `keys`"),
    ];
  }
  const tenants = new Set(keys.map(({ tenant }) => tenant));
  const found = [ok(`${quantity(keys.length, "key")} of ${quantity(tenants.size, "tenant")}`)];
  for (const tenant of tenants) {
    if (keys.some((key) => key.tenant === tenant && key.role !== "viewer")) continue;
    const text = `nobody can review actions of tenant \`${tenant}\`: no key of role \`operator\` or \`admin\``;
    found.push(warn(text, `\`gateway keys new --tenant ${tenant} --role operator\` prints one`));
  }
  if (!mcpGateway.requireAuth) {
    const text = "MCP needs no key: whoever reaches the port is an agent";
    found.push(warn(text, "set `mcp_gateway.require_auth` to true"));
  }
  const own = env.GATEWAY_API_KEY ?? "";
  if (own !== "" && !keys.some(({ keyHash }) => keyHash === contentDigest(own))) {
    found.push(warn("GATEWAY_API_KEY is no key of this configuration", "set it to one of them, or unset it"));
  }
  return found;
}
