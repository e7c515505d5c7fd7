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
    .map(({ name }): readonly [string, () => Promise<string>] => [
      name,
      () => Promise.resolve(join(repositoryRoot, "plugins", name)),
    ]);

  after(() => folders.remove());

  async function writeUneven(): Promise<string> {
    const files = folderOf("uneven", moduleOf(uneven, review, "(memory 1) (global $left (mut i32) (i32.const 0))"));
    return folders.write({ ...files, "plugin.yaml": `${files["plugin.yaml"]}limits: { fuel: 1000000 }\n` });
  }

  async function tell(path: string, atOnce: number, place: "here" | "pool"): Promise<Told> {
    const args = [program, path, seed, envelopes, atOnce, place].map(String);
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: repositoryRoot });
    return JSON.parse(stdout) as Told;
  }

  for (const [name, open] of [...shipped, ["one that runs out of fuel on some", writeUneven] as const]) {
    it(`is a function of the envelope: ${name}, ${envelopes} of them, in two processes`, async () => {
      const path = await open();
      const here = await tell(path, 1, "here");
      const pooled = await tell(path, 16, "pool");
      process.stdout.write(`      seed ${seed}: ${here.digest} here, ${pooled.digest} in the pool\n`);
      process.stdout.write(`      ${JSON.stringify(here.kinds)}\n`);
      expect(pooled).to.deep.equal(here);
      expect(Object.keys(here.kinds)).to.have.length.of.at.least(2);
    });
  }
});
