import { join, resolve, sep } from "node:path";
import type { Command } from "commander";
import type { JsonObject } from "../action/json.ts";
import { formats } from "../config/format.ts";
import type { UpstreamConfig } from "../config/gateway-config.ts";
import { annotateConfig } from "../config/local.ts";
import { demoUpstream } from "../upstream/demo/upstream.ts";
import { buildInstallation, installationForm, type NewInstallation } from "./installation.ts";
import { print, shellWord } from "./print.ts";
import { starterPacks } from "./starter.ts";

interface InitOptions {
  readonly tenant: string;
  readonly upstream?: string;
  readonly witness?: string;
  readonly port: number;
  readonly printKeys?: true;
  readonly json?: true;
}

const defaultPort = 8080;

/** The purpose of each file. */
const purposes: Readonly<Record<string, string>> = {
  "admin.key": "the key of reviewers and operators",
  "agent.key": "the key of your agent, which cannot review",
  data: "state, evidence and the keys that sign evidence",
  "gateway.yaml": "the configuration",
  plugins: "plugins in shadow mode, signed as well",
  "policy-packs": "the shipped packs, signed with the key below",
  "signing-key.pem": "signs packs and plugins; move it to another machine",
  "trust.yaml": "the trusted signers: the public half of that key",
};

/** `gateway init`. */
export async function init(
  folder: string,
  { tenant, upstream, witness, port, printKeys, json }: InitOptions,
  command: Command,
): Promise<void> {
  const made = await makeInstallation(resolve(folder), {
    tenant,
    upstream: upstream === undefined ? null : parseUpstream(upstream, command),
    ...(witness === undefined ? {} : { witness: parseWitness(witness, resolve(folder), command) }),
    firstPort: port,
    writesKeys: printKeys !== true,
  });
  const next = nextSteps(folder, port, printKeys === true);
  if (json) print(JSON.stringify(summaryOf(resolve(folder), made, next)));
  else printInstallation(folder, made, next);
}

function nextSteps(folder: string, port: number, keysArePrinted: boolean): readonly string[] {
  const at = (name: string): string => shellWord(join(folder, name));
  const admin = port === 0 || port === defaultPort ? "" : ` --admin http://127.0.0.1:${port + 1}`;
  const key = keysArePrinted ? "<the admin key>" : `$(cat ${at("admin.key")})`;
  return [
    `gateway doctor --config ${at("gateway.yaml")}`,
    `gateway serve --config ${at("gateway.yaml")}`,
    `GATEWAY_API_KEY=${key} gateway approvals watch${admin}`,
  ];
}

function summaryOf(folder: string, { files, keys }: NewInstallation, next: readonly string[]): object {
  const listed = keys.map(({ id, role, key, file }) => {
    return { id, role, ...(file === null ? { key } : { file: join(folder, file) }) };
  });
  return { ok: true, folder, config: join(folder, "gateway.yaml"), files, keys: listed, next };
}

function printInstallation(folder: string, { files, keys }: NewInstallation, next: readonly string[]): void {
  print(`${folder}: ready to start`);
  for (const file of files) print(`  ${file.padEnd(16)} ${purposes[file] ?? ""}`.trimEnd());
  for (const { id, role, key, file } of keys) {
    if (file === null) print(`\nthe ${id}'s key, role \`${role}\`, not shown again:\n${key}`);
  }
  print(`\nnext\n${next.map((step) => `  ${step}`).join("\n")}`);
}

/** Reads a URL, or words without quotation marks, so that no quoting rules apply. Ends with a usage error for others. */
function parseUpstream(text: string, command: Command): StarterUpstream {
  if (/^https?:/i.test(text) && formats.url.test(text)) return { url: text };
  const [program, ...args] = text.split(" ").filter((word) => word !== "");
  if (program !== undefined && /^[\w ./:@%+,=~-]+$/.test(text) && !/^https?:/i.test(text))
    return { command: program, args };
  const expected = /^https?:/i.test(text)
    ? formats.url.expected
    : "a URL, or a program and its arguments without quotation marks; write others into gateway.yaml";
  return command.error(`error: option '--upstream <server>' argument '${text}' is invalid. expected ${expected}`);
}

/** Returns the absolute path of a folder outside the data folder. Ends with a usage error for one inside. */
function parseWitness(text: string, folder: string, command: Command): string {
  const path = resolve(text);
  if (!`${path}${sep}`.startsWith(`${join(folder, "data")}${sep}`)) return path;
  const expected = "expected a folder outside the data folder: both would be replaced at once";
  return command.error(`error: option '--witness <folder>' argument '${text}' is invalid. ${expected}`);
}

interface InstallationOptions {
  readonly tenant: string;
  readonly firstPort: number;
  /** Null: the demo server. */
  readonly upstream: StarterUpstream | null;
  /** The absolute path of the folder for the notes of the witness; one beside the data folder where absent. */
  readonly witness?: string;
  /** Keys are written to files; otherwise they are only returned. */
  readonly writesKeys: boolean;
}

/** Creates an installation with one MCP server and every shipped pack. Throws as `buildInstallation` does. */
export function makeInstallation(
  folder: string,
  { upstream, writesKeys, ...rest }: InstallationOptions,
): Promise<NewInstallation> {
  const upstreams = [upstream === null ? demoForm(demoUpstream()) : upstreamForm(upstream)];
  const packs = starterPacks.map((name) => ({ name, mode: "enforce" as const }));
  return buildInstallation(folder, {
    writesKeys,
    config: (keyHashes) => annotateConfig(installationForm({ ...rest, keyHashes, upstreams, packs }), configIntro),
    env: process.env,
  });
}

const configIntro =
  "The gateway's configuration, as `gateway init` wrote it. Relative paths start at this file's folder. " +
  "`gateway config reference` prints every setting, `gateway config check` the faults of this file, and " +
  "`gateway doctor` what is missing, such as a witness on another disk and a first backup.";

/** An MCP server: its URL, or the program to start. */
type StarterUpstream = { readonly url: string } | { readonly command: string; readonly args: readonly string[] };

function upstreamForm(upstream: StarterUpstream): JsonObject {
  if ("url" in upstream) return { name: "tools", transport: "http", url: upstream.url };
  return { name: "tools", transport: "stdio", command: upstream.command, args: [...upstream.args] };
}

function demoForm(demo: UpstreamConfig): JsonObject {
  if (demo.transport !== "stdio") throw new TypeError("demoForm: expected a process");
  const { name, transport, command, args, capabilities } = demo;
  return { name, transport, command, args: [...args], capabilities: { ...capabilities } };
}
