import { Command } from "commander";
import { readExtensionFolder } from "../extension/folder.ts";
import { acceptUnverified } from "../extension/unverified.ts";
import { type CompiledPack, compilePack } from "../policy/pack.ts";
import type { TestResult } from "../policy/test-case.ts";
import { signingKeysCommand } from "./extension-keys.ts";
import { signCommand } from "./extension-sign.ts";
import { inspectCommand, verifyCommand } from "./extension-verify.ts";
import { newPackCommand } from "./pack-new.ts";
import { print, tellFaults } from "./print.ts";
import { repeatOnChange } from "./work-watch.ts";

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
