import { openEngineFolder, testEngine } from "../engine/engine-load.ts";
import { readExtensionFolder } from "../trust/folder.ts";
import { acceptUnverified } from "../trust/verified-extension.ts";
import { printFaults } from "./print.ts";
import { reportTests } from "./test-report.ts";

/** `gateway engine test`: signatures are not checked. */
export async function testEngineFolder(folder: string, { json }: { readonly json?: true }): Promise<void> {
  const results = await printFaults(json, async () => {
    const extension = acceptUnverified(await readExtensionFolder(folder, "engine"), null);
    const { source, engine } = await openEngineFolder(folder, extension);
    return testEngine(folder, source, engine);
  });
  if (results !== undefined) reportTests(results, json);
}
