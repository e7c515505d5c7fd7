import { join, resolve } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { formats } from "../config/format.ts";
import { quotePosix } from "./completion/quote.ts";
import { type Installation, makeInstallation } from "./init/installation.ts";
import type { StarterUpstream } from "./init/starter.ts";
import { parseName } from "./keys.ts";
import { parseFirstPort } from "./port-option.ts";
import { print } from "./print.ts";

interface InitOptions {
  readonly tenant: string;
  readonly upstream?: StarterUpstream;
  readonly port: number;
  readonly printKeys?: true;
  readonly json?: true;
}

const usualPort = 8080;

/** What each file is for. */
const purposes: Readonly<Record<string, string>> = {
  "admin.key": "the key of who reviews and operates",
  "agent.key": "the key of your agent, which can review nothing",
  data: "state, evidence and the keys that sign it",
  "gateway.yaml": "the configuration",
  "policy-packs": "baseline and session-watch, signed with the key below",
  "signing-key.pem": "signs packs and plugins; keep it on another machine",
  "trust.yaml": "whose signatures count: the public half of that key",
};

/** `gateway init`. */
export function initCommand(): Command {
  return new Command("init")
    .description("make an installation: a strict configuration, two keys, signed policy packs, and who signs them")
    .argument("[folder]", "where; what is there stays as it is", ".")
    .option("--tenant <name>", "tenant of the keys", parseName, "default")
    .option(
      "--upstream <server>",
      "your MCP server: its URL, or a program and its arguments (default: a demo server that keeps notes)",
      parseUpstream,
    )
    .option("--port <number>", "first of three ports in a row", parseFirstPort, usualPort)
    .option("--print-keys", "print the two keys once, and keep them in no file")
    .option("--json", "print JSON")
    .action(init);
}

async function init(folder: string, { tenant, upstream, port, printKeys, json }: InitOptions): Promise<void> {
  const made = await makeInstallation(resolve(folder), {
    tenant,
    upstream: upstream ?? null,
    firstPort: port,
    keepKeys: printKeys !== true,
  });
  const next = nextSteps(folder, port, printKeys === true);
  if (json) print(JSON.stringify(tellAll(resolve(folder), made, next)));
  else tell(folder, made, next);
}

function nextSteps(folder: string, port: number, keysArePrinted: boolean): readonly string[] {
  const at = (name: string): string => shellWord(join(folder, name));
  const admin = port === 0 || port === usualPort ? "" : ` --admin http://127.0.0.1:${port + 1}`;
  const key = keysArePrinted ? "<the admin key>" : `$(cat ${at("admin.key")})`;
  return [
    `gateway doctor --config ${at("gateway.yaml")}`,
    `gateway serve --config ${at("gateway.yaml")}`,
    `GATEWAY_API_KEY=${key} gateway approvals watch${admin}`,
  ];
}

function tellAll(folder: string, { files, keys }: Installation, next: readonly string[]): object {
  const told = keys.map(({ id, role, key, file }) => {
    return { id, role, ...(file === null ? { key } : { file: join(folder, file) }) };
  });
  return { ok: true, folder, config: join(folder, "gateway.yaml"), files, keys: told, next };
}

function tell(folder: string, { files, keys }: Installation, next: readonly string[]): void {
  print(`${folder}: ready to start`);
  for (const file of files) print(`  ${file.padEnd(16)} ${purposes[file] ?? ""}`.trimEnd());
  for (const { id, role, key, file } of keys) {
    if (file === null) print(`\nthe ${id}'s key, role \`${role}\`, not shown again:\n${key}`);
  }
  print(`\nnext\n${next.map((step) => `  ${step}`).join("\n")}`);
}

/** A URL, or words of which none needs quotation marks: nobody has to know how this would read them. */
function parseUpstream(value: string): StarterUpstream {
  if (/^https?:/i.test(value)) {
    if (formats.url.test(value)) return { url: value };
    throw new InvalidArgumentError(`expected ${formats.url.expected}`);
  }
  const [command, ...args] = value.split(" ").filter((word) => word !== "");
  const isPlain = command !== undefined && /^[\w ./:@%+,=~-]+$/.test(value);
  if (isPlain) return { command, args };
  throw new InvalidArgumentError(
    "expected a URL, or a program and its arguments without quotation marks; write others into gateway.yaml",
  );
}

function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : quotePosix(text);
}
