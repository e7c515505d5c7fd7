import { basename, resolve } from "node:path";
import { Command } from "commander";
import { print } from "./print.ts";
import { parseNewFolder, writeScaffold } from "./scaffold.ts";

/** `gateway pack new`. */
export function newPackCommand(): Command {
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
