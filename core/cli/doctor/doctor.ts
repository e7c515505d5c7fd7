import { resolve } from "node:path";
import { GatewayError } from "../../action/error.ts";
import { escapeHidden } from "../../action/visible-text.ts";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import { loadConfig } from "../../config/load.ts";
import { viewLocalMode } from "../local-mode.ts";
import { print, say } from "../print.ts";
import { type CheckResult, runChecks } from "./check.ts";
import { fail, ok, quantity, type Status } from "./finding.ts";
import { checkNodeVersion } from "./machine.ts";
import { lockHolder } from "./port.ts";

interface DoctorOptions {
  readonly config?: string;
  readonly data?: string;
  readonly port?: number;
  readonly admin?: string;
  readonly json?: true;
}

/** `gateway doctor`. Changes nothing but for a probe file in the data folder, which it removes. Ends with 1 after a failed check. */
export async function doctor(options: DoctorOptions): Promise<void> {
  const results: CheckResult[] = checkNodeVersion(process.versions.node, process.env).map((finding) => {
    return { check: "node", ...finding };
  });
  const config = await readConfiguration(options, results);
  if (config !== undefined) {
    const holder = config.state.enabled ? await lockHolder(config.dataDir) : null;
    const admin = options.admin ?? adminUrl(config);
    results.push(...(await runChecks({ config, holder, env: process.env, admin })));
  }
  const failed = results.filter(({ status }) => status === "fail").length;
  if (failed > 0) process.exitCode = 1;
  if (options.json) return print(JSON.stringify({ ok: failed === 0, findings: results }));
  for (const result of results) print(lineOf(result));
  const warnings = results.filter(({ status }) => status === "warn").length;
  say(`${failed} failed, ${quantity(warnings, "warning")}, ${results.length - failed - warnings} ok`);
}

/** Returns the URL at which this machine reaches the admin port. */
function adminUrl({ listen: { adminHost, adminPort } }: GatewayConfig): string {
  const host = { "0.0.0.0": "127.0.0.1", "::": "::1" }[adminHost] ?? adminHost;
  return `http://${host.includes(":") ? `[${host}]` : host}:${adminPort}`;
}

/** Reads the configuration. Adds each of its faults to `results`, and resolves with undefined then. */
async function readConfiguration(
  { config, data, port }: DoctorOptions,
  results: CheckResult[],
): Promise<GatewayConfig | undefined> {
  const check = "configuration";
  try {
    const read =
      config === undefined
        ? await viewLocalMode(resolve(data ?? "data"), port)
        : await loadConfig(resolve(config), process.env);
    results.push({ check, ...ok(config === undefined ? "local mode" : "valid") });
    return read;
  } catch (cause) {
    const { detail, message } = GatewayError.from(cause);
    const lines = (detail ?? message).split("\n");
    results.push(...lines.map((line) => ({ check, ...fail(line, "see `gateway config reference`") })));
    return undefined;
  }
}

const colors: Readonly<Record<Status, string>> = { ok: "32", warn: "33", fail: "31" };

function lineOf({ check, status, text, fix }: CheckResult): string {
  const word =
    process.stdout.isTTY && process.stdout.hasColors() ? `\u001b[${colors[status]}m${status}\u001b[39m` : status;
  const gap = " ".repeat(6 - status.length);
  return `${word}${gap}${check.padEnd(13)}  ${escapeHidden(text)}${fix === null ? "" : `; ${escapeHidden(fix)}`}`;
}
