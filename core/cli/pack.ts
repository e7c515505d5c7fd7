import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Command, InvalidArgumentError } from "commander";
import { GatewayError } from "../action/error.ts";
import { type CompiledPack, compilePack } from "../policy/pack.ts";
import { nameRule } from "../policy/pack-manifest.ts";
import type { TestResult } from "../policy/test-case.ts";
import { readExtensionFolder } from "../trust/folder.ts";
import { acceptUnverified, type ExtensionKind } from "../trust/verified-extension.ts";
import { signCommand, signingKeysCommand } from "./extension-sign.ts";
import { inspectCommand, verifyCommand } from "./extension-verify.ts";
import { print, tellFaults } from "./print.ts";
import { repeatOnChange } from "./tree-watch.ts";

interface Output {
  readonly watch?: true;
  readonly json?: true;
}

/** `gateway pack`. */
export function packCommand(): Command {
  const pack = new Command("pack").description("policy packs");
  pack
    .command("lint")
    .description("check a pack's manifest, rules and expressions; exit 1 if there are faults")
    .argument("[folder]", "the pack's folder", ".")
    .option("--watch", "check it again after each change")
    .option("--json", "print JSON")
    .action(repeatable(lintPack));
  pack
    .command("test")
    .description("run a pack's own tests; exit 1 if one fails")
    .argument("[folder]", "the pack's folder", ".")
    .option("--watch", "run them again after each change")
    .option("--json", "print JSON")
    .action(repeatable(testPack));
  return pack
    .addCommand(newPackCommand())
    .addCommand(signCommand("pack"))
    .addCommand(verifyCommand("pack"))
    .addCommand(inspectCommand("pack"))
    .addCommand(signingKeysCommand());
}

type Work = (folder: string, json: true | undefined) => Promise<void>;

function repeatable(work: Work): (folder: string, options: Output) => Promise<void> {
  return (folder, { watch, json }) => (watch ? repeatOnChange(folder, () => work(folder, json)) : work(folder, json));
}

async function lintPack(folder: string, json: true | undefined): Promise<void> {
  const compiled = await compile(folder, json);
  if (compiled === undefined) return;
  const { ref, ruleCount } = compiled.pack;
  const { name, version, digest } = ref;
  if (json) print(JSON.stringify({ ok: true, name, version, digest, rules: ruleCount }));
  else print(`${name} ${version}: ok, ${ruleCount} rules, ${digest}`);
}

async function testPack(folder: string, json: true | undefined): Promise<void> {
  const compiled = await compile(folder, json);
  if (compiled === undefined) return;
  const results = await compiled.test();
  const failed = results.filter((result) => result.failures.length > 0);
  if (failed.length > 0) process.exitCode = 1;
  if (json) {
    const failures = failed.map(({ name, place, failures }) => ({ name, ...place, failures }));
    print(JSON.stringify({ ok: failed.length === 0, cases: results.length, failed: failures }));
  } else {
    for (const result of failed) print(describeFailure(result));
    print(`${results.length} cases, ${failed.length} failed`);
  }
}

/** The pack, or undefined: then its faults are printed. */
function compile(folder: string, json: true | undefined): Promise<CompiledPack | undefined> {
  return tellFaults(json, async () => {
    const extension = acceptUnverified(await readExtensionFolder(folder, "pack"), null);
    return await compilePack({
      extension,
      path: folder,
      mode: "enforce",
      settings: {},
      shadowRules: [],
      clock: Date.now,
    });
  });
}

function describeFailure({ name, place, failures }: TestResult): string {
  return failures.map((failure) => `${place.file}:${place.line}:${place.column}: ${name}: ${failure}`).join("\n");
}

/** `gateway pack new`. */
function newPackCommand(): Command {
  return new Command("new")
    .description("write a policy pack with one rule and its tests, to begin with")
    .argument("<folder>", "a new folder; its last part is the pack's name, and begins its rules", parseNewFolder)
    .option("--json", "print JSON")
    .action(makePack);
}

async function makePack(folder: string, { json }: { readonly json?: true }): Promise<void> {
  const name = basename(resolve(folder));
  const now = new Date().toISOString().replace(/\.\d+Z$/, "Z");
  const files = await writeScaffold("pack", folder, { name, now });
  if (json) return print(JSON.stringify({ ok: true, name, folder: resolve(folder), files }));
  print(`${name}: ${files.length} files in ${folder}`);
  print(`next: gateway pack lint ${folder} && gateway pack test ${folder}`);
}

/** Beside `package.json`; compiled code lives two folders below it. */
export const installation: string = fileURLToPath(new URL("../../../", import.meta.url));
const templates = join(installation, "sdk", "template");

/** Dot files do not survive every way of packaging. */
const dotFiles: Readonly<Record<string, string>> = { gitignore: ".gitignore" };

/** Reads the folder of something new; its last part is the name. Throws where that is none. */
export function parseNewFolder(folder: string): string {
  const name = basename(resolve(folder));
  if (nameRule.pattern?.test(name) && name.length <= nameRule.max) return folder;
  throw new InvalidArgumentError(`expected a name that is ${nameRule.shape}, of at most ${nameRule.max} characters`);
}

/**
 * Writes a new extension from its template, `{{key}}` filled in from `values`; answers with the files. Throws
 * EXTENSION_INVALID where the folder holds something already.
 */
export async function writeScaffold(
  kind: ExtensionKind,
  folder: string,
  values: Readonly<Record<string, string>>,
): Promise<readonly string[]> {
  const template = join(templates, kind);
  const entries = await readdir(template, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  try {
    await mkdir(folder, { recursive: true });
    if ((await readdir(folder)).length > 0) throw unusable(folder, "is not empty");
    const written: string[] = [];
    for (const file of files.toSorted()) {
      const path = join(dirname(file), dotFiles[basename(file)] ?? basename(file)).slice(template.length + 1);
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), fill(await readFile(file, "utf8"), values), { flag: "wx" });
      written.push(path);
    }
    return written;
  } catch (cause) {
    if (cause instanceof GatewayError) throw cause;
    throw unusable(folder, `cannot be written: ${(cause as NodeJS.ErrnoException).code ?? String(cause)}`);
  }
}

function fill(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\{\{(\w+)\}\}/g, (whole, key: string) => values[key] ?? whole);
}

function unusable(folder: string, reason: string): GatewayError {
  return new GatewayError("EXTENSION_INVALID", `\`${folder}\` ${reason}; expected a folder that is new, or empty`);
}
