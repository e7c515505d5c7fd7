import { resolve } from "node:path";
import { Command, Option } from "commander";
import { GatewayError } from "../../action/error.ts";
import { escapeHidden } from "../../action/visible-text.ts";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import { loadConfig } from "../../config/load.ts";
import { takeLocalOptions, viewLocalMode } from "../local-mode.ts";
import { print } from "../print.ts";
import { examine, type Told } from "./examination.ts";
import { type Finding, fail, ok, type Status, warn } from "./finding.ts";
import { lockHolder } from "./port.ts";

interface DoctorOptions {
  readonly config?: string;
  readonly data?: string;
  readonly port?: number;
  readonly admin?: string;
  readonly json?: true;
}

const colors: Readonly<Record<Status, string>> = { ok: "32", warn: "33", fail: "31" };

/** `gateway doctor`: changes nothing, but for a file of its own in the data folder that it removes again. */
export function doctorCommand(): Command {
  const command = new Command("doctor")
    .description("find the usual mistakes of an installation, and say how to mend each; exit 1 if anything failed")
    .option("-c, --config <file>", "configuration file (default: local mode, as `gateway serve`)");
  return takeLocalOptions(command)
    .addOption(
      new Option("--admin <url>", "admin port of a gateway that runs (default: as configured)").env(
        "GATEWAY_ADMIN_URL",
      ),
    )
    .option("--json", "print JSON")
    .action(doctor);
}

async function doctor(options: DoctorOptions): Promise<void> {
  const told: Told[] = examineNode(process.versions.node, process.env).map((found) => ({ check: "node", ...found }));
  const config = await readConfiguration(options, told);
  if (config !== undefined) {
    const holder = config.state.enabled ? await lockHolder(config.dataDir) : null;
    const admin = options.admin ?? adminUrl(config);
    told.push(...(await examine({ config, holder, env: process.env, admin })));
  }
  const failed = told.filter(({ status }) => status === "fail").length;
  if (failed > 0) process.exitCode = 1;
  if (options.json) return print(JSON.stringify({ ok: failed === 0, findings: told }));
  for (const finding of told) print(lineOf(finding));
  const doubtful = told.filter(({ status }) => status === "warn").length;
  process.stderr.write(
    `gateway: ${failed} failed, ${doubtful} to think about, ${told.length - failed - doubtful} ok\n`,
  );
}

/** Where this machine reaches the admin port. */
function adminUrl({ listen: { adminHost, adminPort } }: GatewayConfig): string {
  const host = { "0.0.0.0": "127.0.0.1", "::": "::1" }[adminHost] ?? adminHost;
  return `http://${host.includes(":") ? `[${host}]` : host}:${adminPort}`;
}

/** Undefined where it has faults: then each is told. */
async function readConfiguration(
  { config, data, port }: DoctorOptions,
  told: Told[],
): Promise<GatewayConfig | undefined> {
  const check = "configuration";
  try {
    const read =
      config === undefined
        ? await viewLocalMode(resolve(data ?? "data"), port)
        : await loadConfig(resolve(config), process.env);
    told.push({ check, ...ok(config === undefined ? "local mode" : "every key is understood") });
    return read;
  } catch (cause) {
    const { detail, message } = GatewayError.from(cause);
    const lines = (detail ?? message).split("\n");
    told.push(...lines.map((line) => ({ check, ...fail(line, "`gateway config reference` says what is possible") })));
    return undefined;
  }
}

function lineOf({ check, status, text, mend }: Told): string {
  const word =
    process.stdout.isTTY && process.stdout.hasColors() ? `\u001b[${colors[status]}m${status}\u001b[39m` : status;
  const gap = " ".repeat(6 - status.length);
  return `${word}${gap}${check.padEnd(13)}  ${escapeHidden(text)}${mend === null ? "" : `; ${escapeHidden(mend)}`}`;
}

/** Of `engines` in package.json. */
export const oldestNode = "20.19";

/** Options that open a way in, or weaken one. */
const dangerous =
  /^--(?:inspect(?:-brk|-wait|-port)?|debug-port|insecure-http-parser|tls-min-v1\.[01]|tls-cipher-list)$/;

/** What runs the gateway, and what the environment makes of it. */
export function examineNode(version: string, env: NodeJS.ProcessEnv): readonly Finding[] {
  const found = [isOldEnough(version) ? ok(`Node ${version}`) : tooOld(version), ...optionsIn(env.NODE_OPTIONS ?? "")];
  if (env.NODE_TLS_REJECT_UNAUTHORIZED === "0") {
    found.push(fail("NODE_TLS_REJECT_UNAUTHORIZED is 0: no certificate is checked", "take it out of the environment"));
  }
  return found;
}

function isOldEnough(version: string): boolean {
  const [[major = 0, minor = 0], [leastMajor = 0, leastMinor = 0]] = [version, oldestNode].map((text) =>
    text.split(".").map(Number),
  ) as [number[], number[]];
  return major > leastMajor || (major === leastMajor && minor >= leastMinor);
}

function tooOld(version: string): Finding {
  return fail(`Node ${version}, expected ${oldestNode} or later`, "install a newer Node");
}

/** Names of options alone: a value may be anything. */
function optionsIn(text: string): readonly Finding[] {
  const names = text.match(/(?<=^|\s)--?[a-z][a-z0-9.-]*/g) ?? [];
  if (names.length === 0) return [];
  const worst = names.filter((name) => dangerous.test(name));
  const mend = "take NODE_OPTIONS out of the environment";
  if (worst.length > 0) return [fail(`NODE_OPTIONS weakens the process: \`${worst.join(" ")}\``, mend)];
  return [warn(`NODE_OPTIONS changes the process: \`${names.join(" ")}\``, mend)];
}
