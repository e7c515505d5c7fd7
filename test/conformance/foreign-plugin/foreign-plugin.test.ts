import { readFileSync } from "node:fs";
import { join } from "node:path";
import createPlugin from "@extism/extism";
import { expect } from "chai";
import { sha256Hex } from "../../../core/action/canonical-json.ts";
import { compileModule } from "../../../core/plugin/compiled-module.ts";
import { PluginMachine } from "../../../core/plugin/plugin-machine.ts";
import { renameExport } from "../../support/changed-module.ts";
import { type ForeignModule, foreignFolder, readForeignIndex } from "../../support/foreign-module.ts";
import { rejection } from "../../support/ledger-world.ts";

const fuel = 50_000_000;
const memoryPages = 256;
/** Why a module has no answer here: the word that its author reads. */
const reasons: Readonly<Record<string, RegExp>> = {
  "extism-dotnet-sdk-log.wasm": /^missing_output: the plugin set no output$/,
  "opa-policy.wasm": /expected imports of the ABI, got `env`/,
};

// Without the folder of modules there is nothing to compare.
if (foreignFolder !== undefined) compareIn(foreignFolder);

function compareIn(folder: string): void {
  describe("Extism plugins that others made", () => {
    const { modules, config, input } = readForeignIndex(folder);
    const bytes = new TextEncoder().encode(input);
    const read = ({ file, sha256: digest, function: name }: ForeignModule): Uint8Array => {
      const module = readFileSync(join(folder, file));
      expect(sha256Hex(module)).to.equal(digest);
      return name === undefined ? module : renameExport(module, name, "evaluate");
    };

    for (const foreign of modules) {
      const reason = reasons[foreign.file];
      if (reason !== undefined) {
        it(`${foreign.file} is refused with a reason`, async () => {
          const answering = answerHere(read(foreign), config, [bytes]);
          expect((await rejection(answering)).message).to.match(reason);
        });
        continue;
      }
      it(`${foreign.file} answers as in the reference host, and the same again`, async () => {
        const module = read(foreign);
        const reference = await answerThere(module, config, bytes);
        expect(reference).to.equal(foreign.answer);
        expect(await answerHere(module, config, [bytes, bytes, bytes])).to.deep.equal([
          reference,
          reference,
          reference,
        ]);
      });
    }
  });
}

async function answerThere(module: Uint8Array, config: Readonly<Record<string, string>>, input: Uint8Array) {
  const plugin = await createPlugin(new WebAssembly.Module(module), { useWasi: true, config });
  try {
    return (await plugin.call("evaluate", input))?.text() ?? "";
  } finally {
    await plugin.close();
  }
}

async function answerHere(
  module: Uint8Array,
  config: Readonly<Record<string, string>>,
  inputs: readonly Uint8Array[],
): Promise<readonly string[]> {
  const machine = await PluginMachine.open(await compileModule({ bytes: module, memoryPages, fuel, settings: config }));
  const answers: string[] = [];
  for (const input of inputs) {
    await machine.prepare();
    answers.push(Buffer.from(machine.call(input, fuel)).toString());
  }
  return answers;
}
