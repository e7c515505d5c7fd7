import createPlugin, { type Plugin } from "@extism/extism";
import { expect } from "chai";
import { compileModule } from "../../../core/extension/compiled-module.ts";
import { PluginMachine } from "../../../core/extension/plugin-machine.ts";
import type { Json } from "../../../core/kernel/json.ts";
import { makeAction } from "../../support/action.ts";
import { secretEgressModule } from "../../support/secret-egress.ts";
import { abstain, assemble, moduleOf } from "../../support/wasm-plugin.ts";

const random = "q7Xv2LmP9sTz4KbW8nRd3HcY6fGj1AeU5oQi";
const fuel = 50_000_000;
const settings = '{"decision":"block","least_entropy":35,"ignore":[]}';

const inputs: readonly Json[] = [
  {},
  [],
  null,
  { path: "/home/ada/a.md" },
  { header: `Bearer ${"ghp_"}${random}`, env: [`token=${random}`, { "a/b~c": `secret: '${random}'` }] },
  { text: 'ключ 🔑 \u2028 \\ " \n'.repeat(50), password: random },
  { lone: "\ud800", deep: { a: [[[[{ b: `${"AKIA"}IOSFODNN7EXAMPLE` }]]]] } },
  { content: "lorem ipsum dolor sit amet\n".repeat(400) },
];

/** Modules that end by themselves: the reference host has no way to end them. */
const modules: readonly (readonly [string, Uint8Array])[] = [
  ["secret-egress", secretEgressModule()],
  ["one that answers at once", assemble(moduleOf("", abstain))],
  ["one that borrows and returns", assemble(moduleOf("(call $free (call $alloc (i64.const 64)))", abstain))],
  ["one that grows its memory", assemble(moduleOf("(drop (memory.grow (i32.const 3)))", abstain))],
  ["one that logs", assemble(moduleOf("(call $log_info (call $alloc (i64.const 8)))", abstain))],
];

describe("the sandbox beside the reference host of the ABI", () => {
  for (const [name, module] of modules) {
    it(`gets the same answers from ${name}`, async () => {
      const machine = async (): Promise<PluginMachine> =>
        new PluginMachine(await compileModule({ bytes: module, memoryPages: 256, fuel, settings: {} }));
      for (const value of inputs) {
        const action = JSON.stringify(makeAction({ arguments: value }));
        const input = new TextEncoder().encode(`{"settings":${settings},"action":${action}}`);
        // A new one each time: the reference host keeps a plugin's globals from one call to the next.
        const reference: Plugin = await createPlugin({ wasm: [{ data: module }] }, { useWasi: false });
        try {
          const expected = (await reference.call("evaluate", input))?.bytes();
          const answered = (await machine()).call(input, fuel);
          expect(Buffer.from(answered).toString()).to.equal(Buffer.from(expected ?? []).toString());
          expect(answered).not.to.have.length(0);
        } finally {
          await reference.close();
        }
      }
    });
  }
});
