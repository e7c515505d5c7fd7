import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect } from "chai";
import { repositoryRoot } from "../../check/source-tree.ts";
import { PackFolders } from "../../support/policy-pack.ts";
import { roundsOf } from "../../support/rounds.ts";
import { folderOf, moduleOf } from "../../support/wasm-plugin.ts";

const program = fileURLToPath(new URL("../../fixture/verdict-digest.js", import.meta.url));
const seed = 20_260_101;
const envelopes = roundsOf(100, 10_000);
const review =
  '{"decision":"review","findings":[{"rule":"uneven.long","decision":"review","message":"Long.","severity":"low","risk":7}]}';
/** Adds up its input, does more for each byte the larger the sum is, and so runs out of fuel on some inputs. */
const uneven = `
  (loop $next
    (if (i64.lt_u (local.get $j) (call $input_length)) (then
      (local.set $i (i32.add (i32.mul (local.get $i) (i32.const 31)) (call $input_load_u8 (local.get $j))))
      (local.set $j (i64.add (local.get $j) (i64.const 1)))
      (global.set $left (i32.and (local.get $i) (i32.const 255)))
      (loop $wait (if (global.get $left) (then (global.set $left (i32.sub (global.get $left) (i32.const 1))) (br $wait))))
      (br $next))))
  (if (i32.eqz (i32.and (local.get $i) (i32.const 7))) (then unreachable))`;

interface Told {
  readonly digest: string;
  readonly kinds: Readonly<Record<string, number>>;
}

describe("a plugin's verdict", function () {
  this.timeout(240_000);
  const folders = new PackFolders();
  const shipped = readdirSync(join(repositoryRoot, "plugins"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
  const names = [...shipped, "one that runs out of fuel on some"];
  let here: readonly Told[];
  let pooled: readonly Told[];

  before(async () => {
    const files = folderOf("uneven", moduleOf(uneven, review, "(memory 1) (global $left (mut i32) (i32.const 0))"));
    const text = `${files["plugin.yaml"]}limits: { fuel: 1000000 }\n`;
    const last = await folders.write({ ...files, "plugin.yaml": text });
    const paths = [...shipped.map((name) => join(repositoryRoot, "plugins", name)), last];
    [here, pooled] = await Promise.all([tell(1, "here", paths), tell(16, "pool", paths)]);
  });

  after(() => folders.remove());

  async function tell(atOnce: number, place: "here" | "pool", paths: readonly string[]): Promise<readonly Told[]> {
    const args = [program, seed, envelopes, atOnce, place, ...paths].map(String);
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: repositoryRoot });
    return stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Told);
  }

  for (const [index, name] of names.entries()) {
    it(`is a function of the envelope: ${name}, ${envelopes} of them, in two processes`, () => {
      const told = here[index];
      process.stdout.write(`      seed ${seed}: ${told?.digest} here, ${pooled[index]?.digest} in the pool\n`);
      process.stdout.write(`      ${JSON.stringify(told?.kinds)}\n`);
      expect(told?.digest).to.match(/^[0-9a-f]{64}$/);
      expect(pooled[index]).to.deep.equal(told);
      expect(Object.keys(told?.kinds ?? {})).to.have.length.of.at.least(2);
    });
  }
});
