import { lstat, stat } from "node:fs/promises";
import { isAbsolute, join, resolve } from "node:path";
import type { Command } from "commander";
import { GatewayError } from "../../action/error.ts";
import { asciiJson, type JsonObject } from "../../action/json.ts";
import { escapeHidden } from "../../action/visible-text.ts";
import { buildInstallation, type NewInstallation, removeInstallation } from "../installation.ts";
import { print, say, sayProgress, shellWord } from "../print.ts";
import { type AdoptedServer, adoptedConfig, environmentFile, trialPack, trialPackFiles } from "./adopted-config.ts";
import { adoptionFiles, adoptionTexts, undoAdoption } from "./adoption.ts";
import {
  agentKeyVariable,
  type ClientConfig,
  type ClientName,
  type ClientServer,
  clientFormats,
  clientOf,
  parseClientConfig,
  projectOf,
} from "./client-config.ts";
import { type ClientFile, invalidFile, readClientFile, replaceClientFile } from "./client-file.ts";
import { type Proposal, proposeFor } from "./proposal.ts";
import { LeftReason } from "./reference.ts";
import { reportTrial } from "./report.ts";
import { type ServerForm, serverForm } from "./server-entry.ts";
import { eachAtATime, listServerTools } from "./server-tools.ts";

interface AdoptOptions {
  readonly into: string;
  readonly client?: ClientName;
  readonly tenant: string;
  readonly port: number;
  /** Seconds. */
  readonly wait: number;
  readonly dryRun?: true;
  readonly undo?: true;
  readonly report?: true;
  readonly admin: string;
  readonly json?: true;
}

/** `gateway adopt`. */
export async function adopt(file: string | undefined, options: AdoptOptions, command: Command): Promise<void> {
  if (options.report) {
    if (file !== undefined || options.undo)
      command.error("error: expected `--report` alone: it asks the running gateway");
    return reportTrial(options);
  }
  if (file === undefined) return command.error("error: missing required argument 'file'");
  if (options.undo) return undo(file, options);
  const source = await readClientFile(file);
  if (!options.dryRun) await refuseInstallation(resolve(options.into));
  const client = options.client ?? clientOf(source.path);
  if (client === undefined) {
    return command.error(`error: expected a file as a client calls it, or --client <name>, got '${file}'`);
  }
  const plan = await planAdoption(source, parseClientConfig(source, client), options);
  if (plan.adopted.length === 0) throw nothingAdopted(source, plan);
  if (options.dryRun) return printPlan(plan, options, null);
  const made = await install(plan, options);
  try {
    await rewrite(plan);
  } catch (cause) {
    await removeInstallation(resolve(options.into), made);
    throw cause;
  }
  printPlan(plan, options, made);
}

/** Before any server is started for nothing. */
async function refuseInstallation(folder: string): Promise<void> {
  const path = join(folder, "gateway.yaml");
  if ((await lstat(path).catch(() => undefined)) === undefined) return;
  throw new GatewayError(
    "STATE_UNUSABLE",
    `\`${path}\` exists already; move it away, or choose another folder with \`--into\``,
  );
}

async function undo(file: string, { into, json }: AdoptOptions): Promise<void> {
  const result = await undoAdoption(file, resolve(into));
  if (json) return print(asciiJson({ ok: true, file: resolve(file), result, folder: resolve(into) }));
  print(`${file}: ${result === "restored" ? "restored, byte for byte" : "already as it was before"}`);
  say(`stop the gateway that runs from \`${into}\`; its folder and its keys stay until you remove them`);
}

interface AdoptionPlan {
  readonly source: ClientFile;
  readonly client: ClientName;
  readonly adopted: readonly AdoptedServer[];
  /** Servers that stay with their client, and why. */
  readonly left: readonly { readonly name: string; readonly reason: string }[];
  readonly notes: readonly string[];
  readonly secrets: ReadonlyMap<string, string>;
  /** The name of the gateway in the client's configuration. */
  readonly entryName: string;
  /** The client's configuration as it will be. */
  readonly rewritten: Buffer;
}

async function planAdoption(source: ClientFile, config: ClientConfig, options: AdoptOptions): Promise<AdoptionPlan> {
  refuseAdopted(source, config);
  const left: { name: string; reason: string }[] = [];
  const forms = readForms(source, config, left);
  const secrets = new Map(forms.flatMap(({ form }) => [...form.secrets]));
  sayProgress(`starting ${forms.length} servers to read their tools`);
  const listed = await eachAtATime(forms, (one) => propose(one, secrets, options));
  const notes: string[] = [];
  const found: AdoptedServer[] = [];
  for (const [index, result] of listed.entries()) {
    const { name, form } = forms[index] as NamedForm;
    if ("reason" in result) left.push({ name, reason: result.reason });
    else {
      found.push(result.server);
      notes.push(...[...form.notes, ...result.notes].map((note) => `${name}: ${note}`));
    }
  }
  const adopted = prefixRepeated(found);
  const names = new Set(adopted.map(({ name }) => name));
  const used = new Set(forms.filter(({ name }) => names.has(name)).flatMap(({ form }) => [...form.secrets.keys()]));
  const entryName = freeName(config.servers.filter(({ name }) => !names.has(name)));
  const entry = clientFormats[config.client].entry(`http://127.0.0.1:${options.port}/mcp`);
  const text = adopted.length === 0 ? source.text : config.replace(names, entryName, entry);
  return {
    source,
    client: config.client,
    adopted,
    left,
    notes,
    secrets: new Map([...secrets].filter(([name]) => used.has(name))),
    entryName,
    rewritten: Buffer.from(text, "utf8"),
  };
}

/** An entry that a gateway reads its key for is a gateway's: behind another one it would judge everything twice. */
function refuseAdopted({ path }: ClientFile, { servers }: ClientConfig): void {
  const own = servers.find(({ entry }) => JSON.stringify(entry).includes(agentKeyVariable));
  if (own === undefined) return;
  throw invalidFile(
    path,
    `${quote(own.name)} leads to a gateway already; \`gateway adopt --undo\` restores what was there`,
  );
}

interface NamedForm {
  readonly name: string;
  readonly form: ServerForm;
}

/** Reads what the client starts. A server that wants another value of a variable than one before it stays with the client. */
function readForms(
  source: ClientFile,
  config: ClientConfig,
  left: { name: string; reason: string }[],
): readonly NamedForm[] {
  const values = { client: config.client, env: process.env, folder: projectOf(source) };
  const forms: NamedForm[] = [];
  const taken = new Map<string, string>();
  const names = new Set<string>();
  for (const server of config.servers) {
    if (server.isDisabled) {
      left.push({ name: server.name, reason: "the client does not start it" });
      continue;
    }
    try {
      const form = serverForm(server, upstreamName(server, names), values);
      const clash = [...form.secrets].find(([name, value]) => taken.has(name) && taken.get(name) !== value);
      if (clash !== undefined) throw new LeftReason(`another server has its own value of \`${clash[0]}\``);
      for (const [name, value] of form.secrets) taken.set(name, value);
      forms.push({ name: server.name, form });
    } catch (cause) {
      if (!(cause instanceof LeftReason)) throw cause;
      left.push({ name: server.name, reason: cause.message });
    }
  }
  return forms;
}

/** Returns a name of the configuration's form that no other server has. */
function upstreamName({ name }: ClientServer, taken: Set<string>): string {
  const plain = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, "-")
    .replace(/^[^a-z0-9]+/, "")
    .slice(0, 56);
  const base = plain === "" ? "server" : plain;
  for (let count = 1; ; count++) {
    const tried = count === 1 ? base : `${base}-${count}`;
    if (taken.has(tried)) continue;
    taken.add(tried);
    return tried;
  }
}

type Proposed = { readonly server: AdoptedServer; readonly notes: readonly string[] } | { readonly reason: string };

async function propose(
  { name, form: { upstream } }: NamedForm,
  secrets: ReadonlyMap<string, string>,
  { into, wait }: AdoptOptions,
): Promise<Proposed> {
  try {
    const env = { ...process.env, ...Object.fromEntries(secrets) };
    const source = join(resolve(into), "gateway.yaml");
    const { tools, withheld } = await listServerTools(upstream, { source, env, waitMs: wait * 1_000 });
    const hints = { name, root: await rootOf(upstream) };
    const proposals = new Map<string, Proposal>(tools.map((tool) => [tool.name, proposeFor(tool.definition, hints)]));
    const notes = withheld.map((one) => `the gateway hides its ${quote(one.name)}: ${one.reason}`);
    return { server: { name, upstream, proposals }, notes: notes.slice(0, 20) };
  } catch (cause) {
    const { message, detail } = GatewayError.from(cause);
    return { reason: escapeHidden(`its tools cannot be read: ${detail ?? message}`.slice(0, 1_000)) };
  }
}

/** The only folder among the arguments of a server; null where there are several. */
async function rootOf({ args }: JsonObject): Promise<string | null> {
  const words = Array.isArray(args) ? args.filter((word) => typeof word === "string" && isAbsolute(word)) : [];
  const folders: string[] = [];
  for (const word of words.slice(0, 100) as string[]) {
    if ((await stat(word).catch(() => undefined))?.isDirectory()) folders.push(resolve(word));
  }
  const [folder, ...others] = folders;
  return folder === undefined || others.length > 0 || folder === "/" ? null : folder;
}

/** Gives a prefix to the tools of a server that has a name which an earlier one has: only the first would be offered. */
function prefixRepeated(servers: readonly AdoptedServer[]): readonly AdoptedServer[] {
  const taken = new Set<string>();
  return servers.map((server) => {
    const tools = [...server.proposals.keys()];
    const prefix = tools.some((tool) => taken.has(tool)) ? `${String(server.upstream.name)}_` : "";
    for (const tool of tools) taken.add(`${prefix}${tool}`);
    return prefix === "" ? server : { ...server, upstream: { ...server.upstream, tool_prefix: prefix } };
  });
}

function freeName(kept: readonly ClientServer[]): string {
  const names = new Set(kept.map(({ name }) => name));
  const found = ["gateway", "governance-gateway", "agent-governance-gateway"].find((name) => !names.has(name));
  if (found !== undefined) return found;
  throw new GatewayError(
    "CONFIG_INVALID",
    "expected a client whose servers leave the name `gateway` free; rename one of them",
  );
}

function nothingAdopted({ path }: ClientFile, { left }: AdoptionPlan): GatewayError {
  const reasons = left.map(({ name, reason }) => `${quote(name)} stays: ${reason}`);
  return invalidFile(path, `no server of it can be adopted; nothing was changed\n${reasons.join("\n")}`);
}

function install(
  { source, adopted, secrets, rewritten }: AdoptionPlan,
  options: AdoptOptions,
): Promise<NewInstallation> {
  const { tenant, port: firstPort } = options;
  return buildInstallation(resolve(options.into), {
    writesKeys: true,
    config: (keyHashes) => adoptedConfig({ tenant, firstPort, keyHashes, servers: adopted }),
    files: { ...adoptionTexts(source, rewritten), "servers.env": environmentFile(secrets) },
    ownPacks: { [trialPack]: trialPackFiles },
    env: { ...process.env, ...Object.fromEntries(secrets) },
  });
}

/** Writes the client's configuration, unless it was changed while its servers were asked. */
async function rewrite({ source, rewritten }: AdoptionPlan): Promise<void> {
  const { bytes } = await readClientFile(source.path);
  if (!bytes.equals(source.bytes))
    throw invalidFile(source.path, "was changed while its servers were started; try again");
  await replaceClientFile(source.path, rewritten, source.mode);
}

function quote(name: string): string {
  return `\`${escapeHidden(name)}\``;
}

function nextSteps({ into, port }: AdoptOptions, client: ClientName): readonly string[] {
  const at = (name: string): string => shellWord(join(into, name));
  const admin = port === 8080 ? "" : ` --admin http://127.0.0.1:${port + 1}`;
  return [
    `set -a; . ${at("servers.env")}; set +a; gateway serve --config ${at("gateway.yaml")}`,
    `export ${agentKeyVariable}="$(cat ${at("agent.key")})"   # where ${clientFormats[client].title} starts`,
    `GATEWAY_API_KEY="$(cat ${at("admin.key")})" gateway adopt --report${admin}`,
  ];
}

/** Prints what was done, or with `made` null what would be. */
function printPlan(plan: AdoptionPlan, options: AdoptOptions, made: NewInstallation | null): void {
  const folder = resolve(options.into);
  const next = nextSteps(options, plan.client);
  if (options.json) print(asciiJson(summaryOf(plan, folder, made, next)));
  else if (made === null) printProposal(plan, options, folder);
  else printAdoption(plan, folder, next);
}

function printServers({ source, client, adopted, left, notes, entryName }: AdoptionPlan, what: string): void {
  print(`${source.path}: ${what} (${clientFormats[client].title})`);
  for (const { name, proposals } of adopted)
    print(`  ${quote(name)}: ${proposals.size} tools, behind ${quote(entryName)} now`);
  for (const { name, reason } of left) print(`  ${quote(name)} stays as it is: ${reason}`);
  for (const note of notes) say(note);
}

function printProposal(plan: AdoptionPlan, { tenant, port }: AdoptOptions, folder: string): void {
  printServers(plan, "would be adopted");
  print(`\n${join(folder, "gateway.yaml")} would be\n`);
  const keyHashes = { admin: unmade, agent: unmade };
  print(adoptedConfig({ tenant, firstPort: port, keyHashes, servers: plan.adopted }));
}

function printAdoption(plan: AdoptionPlan, folder: string, next: readonly string[]): void {
  printServers(plan, "adopted");
  print(`\n${join(folder, "gateway.yaml")}: read what it states of each tool, and why`);
  print(`${join(folder, adoptionFiles.backup)}: the file as it was; \`gateway adopt --undo\` restores it`);
  print(`\nnext\n${next.map((step) => `  ${step}`).join("\n")}`);
}

/** Stands for the hash of a key that is not made. */
const unmade = `sha256:${"0".repeat(64)}`;

function summaryOf(
  plan: AdoptionPlan,
  folder: string,
  made: NewInstallation | null,
  next: readonly string[],
): JsonObject {
  const tools = plan.adopted.flatMap(({ upstream, proposals }) =>
    Array.from(proposals, ([tool, { capability, facts, reasons, factReasons }]) => {
      return { upstream: String(upstream.name), tool, capability, facts, reasons: [...reasons, ...factReasons] };
    }),
  );
  return {
    ok: true,
    dry_run: made === null,
    client: plan.client,
    file: plan.source.path,
    folder,
    files: made === null ? [] : made.files,
    entry: plan.entryName,
    adopted: plan.adopted.map(({ name, upstream }) => ({ name, upstream: String(upstream.name) })),
    left: plan.left,
    notes: plan.notes,
    tools,
    key: { file: join(folder, "agent.key"), variable: agentKeyVariable },
    next: made === null ? [] : next,
  };
}
