import { expect } from "chai";
import { openPlugin } from "../../../core/cli/plugin-folder.ts";
import { type PluginTestResult, runPluginTests, testFuel } from "../../../core/policy/plugin-test.ts";
import { rejection } from "../../support/ledger-world.ts";
import { PackFolders } from "../../support/policy-pack.ts";
import { abstain, pluginFiles } from "../../support/wasm-plugin.ts";

/** Replaces `ada@example.org` in "write to ada@example.org". */
const redaction = { rule: "sample.email", pointer: "/output/text", start: 9, end: 24, replacement: "[email]" };
const answer = (change: object): string =>
  JSON.stringify({ decision: "allow", findings: [], redactions: [{ ...redaction, ...change }] });
const case_ = (expected: string): string => `cases:
  - name: a case
    action: { phase: output, output: { text: write to ada@example.org } }
    expect: { decision: allow, ${expected} }
`;

describe("a plugin's own tests, run in its sandbox", () => {
  const folders = new PackFolders();
  afterEach(() => folders.remove());

  async function run(verdict: string, tests: string, body = "", more = ""): Promise<readonly PluginTestResult[]> {
    const files = pluginFiles(verdict, body);
    const manifest = { "plugin.yaml": files["plugin.yaml"] + more };
    const folder = await folders.write({ ...files, ...manifest, "tests/a.yaml": tests });
    return runPluginTests(await openPlugin(folder));
  }

  async function failuresOf(verdict: string, expected: string): Promise<readonly string[]> {
    const [result] = await run(verdict, case_(expected));
    return result?.failures ?? ["no result"];
  }

  it("expect each place that is redacted, by what stands there", async () => {
    const right = "{ rule: sample.email, pointer: /output/text, text: ada@example.org, replacement: '[email]' }";
    expect(await failuresOf(answer({}), `redactions: [${right}]`)).to.deep.equal([]);
    expect(await failuresOf(answer({}), "redactions: [{ text: ada@example.org }]")).to.deep.equal([]);
    expect(await failuresOf(answer({}), "errors: 0")).to.deep.equal([]);
  });

  it("fail where another place is redacted, one more, or one less", async () => {
    const left = "expected no redaction of `ada@example.org` at /output/text by `sample.email`";
    expect(await failuresOf(answer({}), "redactions: []")).to.deep.equal([left]);
    expect(await failuresOf(answer({}), "redactions: [{ text: ada }]")).to.deep.equal([
      'expected a redaction {"text":"ada"}, got none such',
      left,
    ]);
    const twice = "redactions: [{ rule: sample.email }, { rule: sample.email }]";
    expect(await failuresOf(answer({}), twice)).to.deep.equal([
      'expected a redaction {"rule":"sample.email"}, got none such',
    ]);
  });

  it("block where a redaction does not fit the output, as the gateway does", async () => {
    for (const change of [{ end: 99 }, { pointer: "/output/none" }]) {
      const failures = await failuresOf(answer(change), "redactions: []");
      expect(failures[0]).to.equal("expected allow, got block");
      expect(failures[1]).to.include("expected no error, got expected redactions");
    }
  });

  it("start each from a fresh state, and tell what fuel each takes", async () => {
    const count = "(i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1)))";
    const trap = `${count} (if (i32.gt_u (i32.load (i32.const 0)) (i32.const 1)) (then unreachable))`;
    const both =
      "cases:\n  - { name: a, expect: { decision: abstain } }\n  - { name: b, expect: { decision: abstain } }\n";
    const results = await run(abstain, both, trap);
    expect(results.map(({ failures }) => failures)).to.deep.equal([[], []]);
    expect(results[0]?.fuelUsed).to.be.greaterThan(0).and.equal(results[1]?.fuelUsed);
  });

  it("[S35] are refused where they spend too much together", async () => {
    const rows = (count: number): string =>
      `cases:\n  - name: spin\n    each:\n${"      - {}\n".repeat(count)}    expect: { decision: block, errors: 1 }\n`;
    const most = testFuel / 50_000_000;
    const limits = "limits: { fuel: 50000000 }\n";
    const spin = "(loop $l (br $l))";
    expect(await run(abstain, rows(most), spin, limits)).to.have.length(most);
    const error = await rejection(run(abstain, rows(most + 1), spin, limits));
    expect(error.message).to.include(`expected tests of at most ${testFuel} units of fuel in all`);
  });
});
