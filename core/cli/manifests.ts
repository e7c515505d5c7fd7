import { createPrivateKey, type KeyObject } from "node:crypto";
import { readFile } from "node:fs/promises";
import { Command, InvalidArgumentError } from "commander";
import { GatewayError } from "../action/error.ts";
import { asciiJson, type Json } from "../action/json.ts";
import { showText } from "../action/visible-text.ts";
import { plainValue, readDocument } from "../config/document.ts";
import { FaultList } from "../config/fault.ts";
import type { ManifestView } from "../manifest/operation.ts";
import { signReference } from "../manifest/reference.ts";
import { readTaskManifest } from "../manifest/task-manifest.ts";
import { type AdminOptions, adminOption, askJson } from "./admin-client.ts";
import { printList } from "./list.ts";
import { print, say } from "./print.ts";

interface Output extends AdminOptions {
  readonly json?: true;
}

interface DeclareOptions extends Output {
  readonly file: string;
}

/** `gateway manifests`: the declared plans of agents' tasks, in a running gateway. */
export function manifestsCommand(): Command {
  const manifests = new Command("manifests").description("what agents are expected to do, task by task");
  manifests
    .command("declare")
    .description("put a manifest in force, in place of the one its task had")
    .requiredOption("-f, --file <file>", "the manifest, YAML or JSON")
    .addOption(adminOption())
    .option("--json", "print JSON")
    .action(declareManifest);
  manifests
    .command("list")
    .description("print the manifests in force")
    .addOption(adminOption())
    .option("--json", "print JSON, one line each")
    .action(listManifests);
  about("show", "print one manifest").action(showManifest);
  about("withdraw", "take a manifest out of force").action(withdrawManifest);
  manifests.addCommand(signReferenceCommand());
  return manifests;

  function about(name: string, description: string): Command {
    return manifests
      .command(name)
      .description(description)
      .argument("<task>", "as `gateway manifests list` prints it", parseTask)
      .addOption(adminOption())
      .option("--json", "print JSON");
  }
}

async function declareManifest(options: DeclareOptions): Promise<void> {
  const manifest = readTaskManifest(await readFileAsJson(options.file));
  const told = await askJson<ManifestView>(options, manifestsPath, "POST", { ...manifest });
  print(options.json ? asciiJson(told) : `${told.task}: in force, ${told.digest}`);
}

async function readFileAsJson(file: string): Promise<Json> {
  const faults = new FaultList(file);
  const document = await readDocument(file, faults);
  faults.throwIfAny("INVALID_PARAMS");
  return document === undefined ? null : plainValue(document);
}

async function listManifests(options: Output): Promise<void> {
  await printList(options, manifestsPath, { json: options.json, describe });
}

async function showManifest(task: string, options: Output): Promise<void> {
  const told = await askManifest(options, task);
  print(options.json ? asciiJson(told) : detail(told));
}

async function withdrawManifest(task: string, options: Output): Promise<void> {
  const withdrawn = await askJson(options, `${manifestsPath}/${task}`, "DELETE");
  if (options.json) print(asciiJson(withdrawn));
  say(`withdrew the manifest of ${task}`);
}

function describe({ task, principal, session, max_actions: most, expires_at: until }: ManifestView): string {
  return `${task}  ${scopeOf(principal, session)}  at most ${most} actions  until ${until}`;
}

function scopeOf(principal: string, session: string | undefined): string {
  return session === undefined ? principal : `${principal} in \`${session}\``;
}

function detail(told: ManifestView): string {
  const list = (patterns: readonly string[]): string => patterns.map(showText).join("  ") || "none";
  const rows: readonly (readonly [string, string])[] = [
    ["task", told.task],
    ["of", scopeOf(told.principal, told.session)],
    ["tools", list(told.expected_tools)],
    ["resources", list(told.expected_resources)],
    ["writes to", list(told.write_domains)],
    ["actions", `at most ${told.max_actions} of a session`],
    ["until", told.expires_at],
    ["mode", told.mode ?? "as configured"],
    ["declared", `${told.declared_at} by ${told.declared_by}`],
    ["digest", told.digest],
  ];
  return rows.map(([name, text]) => `${name.padEnd(11)}${text}`).join("\n");
}

interface SignOptions extends AdminOptions {
  readonly key: string;
  readonly expiresIn: number;
  readonly json?: true;
}

/** `gateway manifests sign-reference`. */
function signReferenceCommand(): Command {
  return new Command("sign-reference")
    .description("print what an agent sends with its first call, so that its session works on a task")
    .argument("<task>", "as `gateway manifests list` prints it", parseTask)
    .requiredOption("-k, --key <file>", "unencrypted PEM of an Ed25519 private key, one of `sessions.task_signers`")
    .option("--expires-in <seconds>", "how long it may be sent, at most 31 days", parseSeconds, 3_600)
    .addOption(adminOption())
    .option("--json", "print JSON, with what it says")
    .action(signTask);
}

async function signTask(task: string, options: SignOptions): Promise<void> {
  const key = await readKey(options.key);
  const { tenant, principal, digest } = await askManifest(options, task);
  const claims = { tenant, principal, task, manifest: digest, exp: Math.floor(Date.now() / 1_000) + options.expiresIn };
  const reference = signReference(claims, key);
  print(options.json ? JSON.stringify({ reference, claims }) : reference);
}

/** Throws KEY_UNUSABLE, which quotes nothing of the file. */
async function readKey(file: string): Promise<KeyObject> {
  const pem = await readFile(file, "utf8").catch((cause: NodeJS.ErrnoException) => {
    throw new GatewayError("KEY_UNUSABLE", `\`${file}\` cannot be read: ${cause.code ?? String(cause)}`, { cause });
  });
  try {
    const key = createPrivateKey(pem);
    if (key.asymmetricKeyType === "ed25519") return key;
  } catch {
    // What is wrong with it may quote it.
  }
  throw new GatewayError("KEY_UNUSABLE", "expected the unencrypted PEM of an Ed25519 private key");
}

function parseSeconds(text: string): number {
  const seconds = Number(text);
  if (Number.isInteger(seconds) && seconds >= 1 && seconds <= 31 * 86_400) return seconds;
  throw new InvalidArgumentError(`expected a whole number from 1 to ${31 * 86_400}`);
}

const manifestsPath = "/admin/v1/manifests";

/** The name of a task, or a mistake in the command line. */
function parseTask(text: string): string {
  if (/^[a-z0-9][a-z0-9._-]{0,63}$/.test(text)) return text;
  throw new InvalidArgumentError("expected the name of a task: 1 to 64 of `a-z 0-9 . _ -`");
}

/** The manifest of a task. Rejects as `askAdmin` does. */
function askManifest(options: AdminOptions, task: string): Promise<ManifestView> {
  return askJson(options, `${manifestsPath}/${task}`);
}
