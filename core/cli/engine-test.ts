import { openEngineFolder, testEngine } from "../engine/engine-load.ts";
import { readExtensionFolder } from "../trust/folder.ts";
import { acceptUnverified } from "../trust/verified-extension.ts";
import { print, printFaults } from "./print.ts";

/** `gateway engine test`: signatures are not checked. */
export async function testEngineFolder(folder: string, { json }: { readonly json?: true }): Promise<void> {
  const results = await printFaults(json, async () => {
    const extension = acceptUnverified(await readExtensionFolder(folder, "engine"), null);
    const { source, engine } = await openEngineFolder(folder, extension);
    return testEngine(folder, source, engine);
  });
  if (results === undefined) return;
  const failed = results.filter(({ failures }) => failures.length > 0);
  if (failed.length > 0) process.exitCode = 1;
  if (json) {
    const faults = failed.map(({ name, place, failures }) => ({ name, ...place, failures }));
    return print(JSON.stringify({ ok: failed.length === 0, cases: results.length, failed: faults }));
  }
  for (const { name, place, failures } of failed) {
    for (const failure of failures) print(`${place.file}:${place.line}:${place.column}: ${name}: ${failure}`);
  }
  print(`${results.length} cases, ${failed.length} failed`);
}
