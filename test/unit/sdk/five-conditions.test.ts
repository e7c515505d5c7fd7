import { expect } from "chai";
import type { Json } from "../../../core/action/json.ts";
import { makeAction } from "../../support/action.ts";
import { buildAssembly } from "../../support/assembly.ts";
import { openSample } from "../../support/wasm-plugin.ts";

const args = { path: "/etc/hosts", options: { overwrite: true, mode: 512 } };
const met = { tool: "write_file", arguments: args as Json };

describe("a plugin with five conditions, by `get` and by `read`", () => {
  it("blocks where all are met, and abstains where any is not", async () => {
    const module = await buildAssembly("test/fixture/five-conditions");
    const unmet = [
      { ...met, tool: "read_file" },
      { ...met, principal: { id: "p", role: "viewer", keyId: "k" } as const },
      { ...met, arguments: { ...args, path: "/home/etc/" } },
      { ...met, arguments: { ...args, options: { overwrite: "true ", mode: 512 } } },
      { ...met, arguments: { ...args, options: { overwrite: true, mode: 511 } } },
      { ...met, arguments: { options: args } },
      { ...met, arguments: [args] },
    ];
    for (const read of [false, true]) {
      const { policy } = await openSample(module, {
        ref: { kind: "plugin", name: "five-conditions", version: "1.0.0", digest: "sha256:00", signer: null },
        settings: { read },
      });
      expect(policy.evaluate(makeAction(met)).decision).to.equal("block");
      const decisions = unmet.map((changed) => policy.evaluate(makeAction(changed)).decision);
      expect(decisions).to.deep.equal(unmet.map(() => "abstain"));
    }
  });
});
