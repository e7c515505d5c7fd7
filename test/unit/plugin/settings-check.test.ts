import { expect } from "chai";
import type { JsonObject } from "../../../core/action/json.ts";
import { makeAction } from "../../support/action.ts";
import { buildAssembly } from "../../support/assembly.ts";
import { rejection } from "../../support/ledger-world.ts";
import { abstain, assemble, moduleOf, openSample } from "../../support/wasm-plugin.ts";

/** A module whose `validate_settings` runs `body`, and then answers with this. */
function checking(answer: string, body = "", type = "(result i32)", end = "(i32.const 0)"): string {
  const bytes = [...new TextEncoder().encode(answer)];
  const stores = bytes.map(
    (byte, at) => `(call $store_u8 (i64.add (local.get $out) (i64.const ${at})) (i32.const ${byte}))`,
  );
  const check = `(memory 1) (func (export "validate_settings") ${type} (local $out i64) ${body}
    (local.set $out (call $alloc (i64.const ${bytes.length}))) ${stores.join("\n")}
    (call $output_set (local.get $out) (i64.const ${bytes.length})) ${end})`;
  return moduleOf("", abstain, check);
}

async function refusalOf(module: string | Uint8Array, settings: JsonObject = {}): Promise<string> {
  const error = await rejection(openSample(module, { settings }));
  expect(error).to.include({ code: "PLUGIN_INVALID" });
  return error.message;
}

describe("validate_settings of a plugin", () => {
  it("is asked about the settings in force, and its message refuses the load", async () => {
    const probe = await buildAssembly("test/fixture/settings-probe");
    await openSample(probe, { settings: { least: 2, most: 2 } });
    expect(await refusalOf(probe, { least: 3, most: 2 })).to.equal(
      "invalid plugin: `sample`: the plugin refuses its settings: `least` is 3, above `most`, which is 2",
    );
  });

  it("lets through what it calls valid, and nothing that it does not", async () => {
    await openSample(checking('{"valid":true}'));
    await openSample(assemble(moduleOf("")));
    expect(await refusalOf(checking('{"valid":false,"message":"too few"}'))).to.include("its settings: too few");
    const unclear = [
      '{"valid":false}',
      '{"valid":"true"}',
      '{"valid":true,"message":"but"}',
      '{"valid":true,"note":"x"}',
      '{"valid":false,"message":""}',
      '{"valid":false,"message":"a\u202eb"}',
      `{"valid":false,"message":"${"x".repeat(513)}"}`,
      '{"valid":true,"valid":true}',
      "true",
      "",
    ];
    for (const answer of unclear) {
      expect(await refusalOf(checking(answer)), answer).to.include("expected `validate_settings` to answer with");
    }
  });

  it("[S35] runs on fuel, and refuses the load where it breaks off", async () => {
    expect(await refusalOf(checking('{"valid":true}', "(loop $l (br $l))"))).to.include(
      "`validate_settings`: fuel_exhausted",
    );
    expect(await refusalOf(checking('{"valid":true}', "unreachable"))).to.include("`validate_settings`: trap");
    expect(await refusalOf(checking('{"valid":true}', "", "(result i32)", "(i32.const 1)"))).to.include("plugin_error");
  });

  it("is a function without parameters that answers with an i32", async () => {
    expect(await refusalOf(checking('{"valid":true}', "", "", ""))).to.include(
      "expected `validate_settings` to be `() -> i32`",
    );
  });

  it("leaves no trace in what it was before the first call", async () => {
    const mark = "(i32.store (i32.const 0) (i32.const 1))";
    const module = checking('{"valid":true}', mark).replace(
      '(func (export "evaluate") (result i32) (local $out i64) (local $i i32) (local $j i64)',
      "$&\n(if (i32.load (i32.const 0)) (then unreachable))",
    );
    const { policy } = await openSample(module);
    expect(module).to.include("(then unreachable)");
    expect(await policy.evaluate(makeAction())).to.include({ decision: "abstain" });
  });
});
