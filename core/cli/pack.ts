import { resolve } from "node:path";
import type { Command } from "commander";
import { type CompiledPack, compilePack } from "../policy/pack.ts";
import { readExtensionFolder } from "../trust/folder.ts";
import { acceptUnverified } from "../trust/verified-extension.ts";
import { print, printFaults } from "./print.ts";
import { readNewName, writeScaffold } from "./scaffold.ts";
import { reportTests } from "./test-report.ts";
import { repeatOnChange } from "./tree-watch.ts";

interface RepeatOptions {
  readonly watch?: true;
  readonly json?: true;
}

/** `gateway pack new`. */
export async function createPack(folder: string, { json }: { readonly json?: true }, command: Command): Promise<void> {
  const name = readNewName(folder, command);
  const now = new Date().toISOString().replace(/\.\d+Z$/, "Z");
  const files = await writeScaffold([{ from: "template/pack" }], folder, { name, now });
  if (json) return print(JSON.stringify({ ok: true, name, folder: resolve(folder), files }));
  print(`${name}: ${files.length} files in ${folder}`);
  print(`next: gateway pack lint ${folder} && gateway pack test ${folder}`);
}

/** `gateway pack lint`. */
export function lintPackFolder(folder: string, { watch, json }: RepeatOptions): Promise<void> {
  return watch ? repeatOnChange(folder, () => lintPack(folder, json)) : lintPack(folder, json);
}

/** `gateway pack test`. */
export function testPackFolder(folder: string, { watch, json }: RepeatOptions): Promise<void> {
  return watch ? repeatOnChange(folder, () => testPack(folder, json)) : testPack(folder, json);
}

async function lintPack(folder: string, json: true | undefined): Promise<void> {
  const compiled = await compileFolder(folder, json);
  if (compiled === undefined) return;
  const { ref, ruleCount } = compiled.pack;
  const { name, version, digest } = ref;
  if (json) print(JSON.stringify({ ok: true, name, version, digest, rules: ruleCount }));
  else print(`${name} ${version}: ok, ${ruleCount} rules, ${digest}`);
}

async function testPack(folder: string, json: true | undefined): Promise<void> {
  const compiled = await compileFolder(folder, json);
  if (compiled === undefined) return;
  reportTests(await compiled.test(), json);
}

/** Compiles a pack; prints its faults and resolves with undefined where it has any. */
function compileFolder(folder: string, json: true | undefined): Promise<CompiledPack | undefined> {
  return printFaults(json, async () => {
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
