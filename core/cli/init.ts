import { randomBytes } from "node:crypto";
import { cp, lstat, mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { GatewayError } from "../action/error.ts";
import type { Json, JsonObject } from "../action/json.ts";
import { formats } from "../config/format.ts";
import type { UpstreamConfig } from "../config/gateway-config.ts";
import { loadConfig } from "../config/load.ts";
import { annotateConfig, annotateTrust } from "../config/local.ts";
import { generateKey } from "../identity/key-ring.ts";
import { makeFolder } from "../store/folder.ts";
import { stateFault } from "../store/open.ts";
import { readExtensionFolder, signatureFiles } from "../trust/folder.ts";
import { type ExtensionSigner, generateSigner, readSigner } from "../trust/signing.ts";
import { statementBytes } from "../trust/statement.ts";
import { acceptUnverified, type ExtensionKind } from "../trust/verified-extension.ts";
import { demoUpstream } from "../upstream/demo/upstream.ts";
import { newStatement, readContent } from "./extension-sign.ts";
import { print, quotePosix } from "./print.ts";
import { replaceFile } from "./replace-file.ts";
import { installation } from "./scaffold.ts";
import { starterPacks, starterPlugins } from "./starter.ts";

interface InitOptions {
  readonly tenant: string;
  readonly upstream?: string;
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
  { tenant, upstream, port, printKeys, json }: InitOptions,
  command: Command,
): Promise<void> {
  const made = await makeInstallation(resolve(folder), {
    tenant,
    upstream: upstream === undefined ? null : parseUpstream(upstream, command),
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

function summaryOf(folder: string, { files, keys }: Installation, next: readonly string[]): object {
  const listed = keys.map(({ id, role, key, file }) => {
    return { id, role, ...(file === null ? { key } : { file: join(folder, file) }) };
  });
  return { ok: true, folder, config: join(folder, "gateway.yaml"), files, keys: listed, next };
}

function printInstallation(folder: string, { files, keys }: Installation, next: readonly string[]): void {
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

function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : quotePosix(text);
}

interface InstallationOptions extends Omit<Starter, "keyHashes"> {
  /** Keys are written to files; otherwise they are only returned. */
  readonly writesKeys: boolean;
}

interface MadeKey {
  readonly id: string;
  readonly role: string;
  /** The key itself, a secret. */
  readonly key: string;
  /** Its file; null where it is stored nowhere. */
  readonly file: string | null;
}

interface Installation {
  /** The created files and folders, sorted. */
  readonly files: readonly string[];
  readonly keys: readonly MadeKey[];
}

/**
 * Creates an installation in a folder: all of it in a stage, loaded once as a gateway would, then moved to its place. Throws
 * STATE_UNUSABLE where a file of it exists already or cannot be written; then nothing is created.
 */
export async function makeInstallation(folder: string, options: InstallationOptions): Promise<Installation> {
  const signer = generateSigner();
  const keys = starterKeys.map(({ id, role }) => {
    return { id, role, ...generateKey(randomBytes), file: options.writesKeys ? `${id}.key` : null };
  });
  const keyHashes = Object.fromEntries(keys.map(({ id, keyHash }) => [id, keyHash]));
  const texts = {
    "gateway.yaml": starterConfig({ ...options, keyHashes }),
    "trust.yaml": starterTrust(signer.public.spki),
    "signing-key.pem": signer.pem,
    ...Object.fromEntries(keys.flatMap(({ file, key }) => (file === null ? [] : [[file, `${key}\n`]]))),
  };
  const files = [...Object.keys(texts), "data", "plugins", "policy-packs"].toSorted();
  await withStage(folder, files, async (stage) => {
    for (const [name, text] of Object.entries(texts)) {
      await writeFile(join(stage, name), text, { mode: 0o600, flag: "wx" });
    }
    await mkdir(join(stage, "data"), { mode: 0o700 });
    const by = readSigner(signer.pem);
    for (const name of starterPacks) await copyExtension("pack", join("policy-packs", name), stage, by);
    for (const { name } of starterPlugins) await copyExtension("plugin", join("plugins", name), stage, by);
    await loadConfig(join(stage, "gateway.yaml"), process.env);
  });
  return { files, keys: keys.map(({ id, role, key, file }) => ({ id, role, key, file })) };
}

/** Creates `names` with `fill` in a temporary folder and moves them into `folder`. */
async function withStage(
  folder: string,
  names: readonly string[],
  fill: (stage: string) => Promise<void>,
): Promise<void> {
  let stage: string | undefined;
  const placed: string[] = [];
  try {
    await makeFolder(folder);
    await refusePresent(folder, names);
    stage = await mkdtemp(join(folder, ".init-"));
    await fill(stage);
    await refusePresent(folder, names);
    for (const name of names) {
      await rename(join(stage, name), join(folder, name));
      placed.push(join(folder, name));
    }
  } catch (cause) {
    for (const path of placed) await rm(path, { recursive: true, force: true });
    throw cause instanceof GatewayError ? cause : stateFault(folder, cause);
  } finally {
    if (stage !== undefined) await rm(stage, { recursive: true, force: true });
  }
}

async function refusePresent(folder: string, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const path = join(folder, name);
    const isThere = await lstat(path).then(
      () => true,
      (cause: NodeJS.ErrnoException) => {
        if (cause.code === "ENOENT") return false;
        throw cause;
      },
    );
    if (isThere)
      throw new GatewayError("STATE_UNUSABLE", `\`${path}\` exists already; move it away, or choose another folder`);
  }
}

/** Copies a shipped pack or plugin into a new installation and signs the copy. */
async function copyExtension(kind: ExtensionKind, path: string, stage: string, signer: ExtensionSigner): Promise<void> {
  const folder = join(stage, path);
  await cp(join(installation, path), folder, { recursive: true, errorOnExist: true, force: false });
  const read = await readExtensionFolder(folder, kind);
  const content = await readContent(kind, folder, acceptUnverified(read, null));
  const statement = newStatement(read, content, new Date().toISOString(), undefined);
  await replaceFile(join(folder, signatureFiles[kind]), signer.sign(statementBytes(statement)));
}

/** The keys of a new installation: one for reviewers, and one for agents, which cannot review. */
const starterKeys = [
  { id: "admin", role: "admin" },
  { id: "agent", role: "viewer" },
] as const;

/** An MCP server: its URL, or the program to start. */
type StarterUpstream = { readonly url: string } | { readonly command: string; readonly args: readonly string[] };

interface Starter {
  readonly tenant: string;
  readonly firstPort: number;
  /** By the id of the key. */
  readonly keyHashes: Readonly<Record<string, string>>;
  /** Null: the demo server. */
  readonly upstream: StarterUpstream | null;
}

const configIntro =
  "The gateway's configuration, as `gateway init` wrote it. Relative paths start at this file's folder. " +
  "`gateway config reference` prints every setting, `gateway config check` the faults of this file, and " +
  "`gateway doctor` what is missing, such as `evidence.witnesses` and `resilience`.";

const trustIntro =
  "The trusted signers. Write access to this file decides which policies the gateway runs. After a change of a pack: " +
  "`gateway pack sign <folder> --key signing-key.pem`.";

/** The text of `gateway.yaml`. */
function starterConfig({ tenant, firstPort, keyHashes, upstream }: Starter): string {
  const step = firstPort === 0 ? 0 : 1;
  const form: JsonObject = {
    listen: {
      host: "127.0.0.1",
      gateway_port: firstPort,
      admin_port: firstPort + step,
      metrics_port: firstPort + 2 * step,
    },
    data_dir: "data",
    state: { enabled: true, mark: "gateway.mark" },
    keys: starterKeys.map(({ id, role }) => ({ id, tenant, role, key_hash: keyHashes[id] ?? null })),
    mcp_gateway: { require_auth: true },
    upstreams: [upstream === null ? demoForm(demoUpstream()) : upstreamForm(upstream)],
    model_gateway: { tool_passthrough: "client" },
    policy: {
      packs: starterPacks.map((name) => ({ path: `policy-packs/${name}`, mode: "enforce" })),
      plugins: starterPlugins.map(({ name, mode, phases }) => ({ path: `plugins/${name}`, mode, phases: [...phases] })),
      default_decision: "block",
    },
    extensions: { strict: true, trust_policy: "trust.yaml" },
    log: { level: "info" },
  };
  return annotateConfig(form, configIntro);
}

/** The text of `trust.yaml`: one signer, by its public key. */
function starterTrust(publicKey: string): string {
  return annotateTrust({ any_of: { minimum: 1, signers: [{ name: "operator", key: publicKey }] } }, trustIntro);
}

function upstreamForm(upstream: StarterUpstream): Json {
  if ("url" in upstream) return { name: "tools", transport: "http", url: upstream.url };
  return { name: "tools", transport: "stdio", command: upstream.command, args: [...upstream.args] };
}

function demoForm(demo: UpstreamConfig): Json {
  if (demo.transport !== "stdio") throw new TypeError("demoForm: expected a process");
  const { name, transport, command, args, capabilities } = demo;
  return { name, transport, command, args: [...args], capabilities: { ...capabilities } };
}
