import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Level } from "level";
import { partRange, recordKey, recordRange } from "../../../core/evidence/record/key-space.ts";
import { openStore } from "../../../core/store/open.ts";
import { rewriteRange } from "../../../core/store/rewrite.ts";
import { encodeValue } from "../../../core/store/value-encoding.ts";
import { filesWith } from "../../support/disk-search.ts";
import { roundsOf } from "../../support/rounds.ts";

const opener = new URL("../../../core/store/open.js", import.meta.url).href;

const tenants = ["acme", "a/b", "{record}", "~", "disclosure"];
const families = ["record", "disclosure"] as const;
/** More entries than one batch moves. */
const records = 2_100;
const text = JSON.stringify({ kind: "decision", prev_hash: "0".repeat(64) });

function formerKey(tenant: string, part: string, seq: number): string {
  return `${encodeURIComponent(tenant)}/${part}/${String(seq).padStart(16, "0")}`;
}

describe("a store of an earlier format", () => {
  let dir: string;

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "format-"));
  });

  afterEach(() => rm(dir, { recursive: true, force: true }));

  async function whileRaw<T>(run: (raw: Level<string, Buffer>) => Promise<T>, folder = "state"): Promise<T> {
    const raw = new Level<string, Buffer>(join(dir, folder), { valueEncoding: "buffer" });
    return run(raw).finally(() => raw.close());
  }

  /** `moved` records of the first tenant lie where format 3 has them. */
  async function write(format: string, value: Buffer, moved = 0): Promise<void> {
    await whileRaw(async (raw) => {
      await raw.put("format", Buffer.from(format));
      await raw.put("epoch", Buffer.from("7"));
      for (const [at, tenant] of tenants.entries()) {
        const batch = raw
          .batch()
          .put(formerKey(tenant, "held", 1), value)
          .put(formerKey(tenant, "tile/0", 0), value);
        for (const part of families) {
          for (let seq = 0; seq < (at === 0 ? records : 3); seq++) {
            const isMoved = format === "3" || (at === 0 && part === "record" && seq < moved);
            batch.put(isMoved ? recordKey(tenant, seq, part) : formerKey(tenant, part, seq), value);
          }
        }
        await batch.write();
      }
    });
  }

  for (const [format, value, moved] of [
    ["1", Buffer.from(text), 0],
    ["2", encodeValue(text), 0],
    ["3 from 2", encodeValue(text), 1],
    ["3 from 2", encodeValue(text), 1_500],
    ["3 from 2", encodeValue(text), records],
    ["3", encodeValue(text), records],
  ] as const) {
    it(`is brought to this one from \`${format}\`, ${moved} records of which are moved`, async () => {
      await write(format, value, moved);
      const moves: number[] = [];
      const store = await openStore({ dir, enabled: true, onMoved: (entries) => moves.push(entries) });
      const entries = 2 * records + 2 * 3 * (tenants.length - 1);
      expect(moves.at(-1)).to.equal(format === "3" ? entries : entries - moved);
      expect(await store.values(recordRange("acme")).all()).to.deep.equal(Array(records).fill(text));
      await store.close();
      const others = await whileRaw((raw) => raw.iterator().all());
      expect(hexOf(others.filter(([key]) => key !== "}turn"))).to.deep.equal(
        hexOf([
          ["epoch", Buffer.from("7")],
          ["format", Buffer.from("5")],
          ...tenants.flatMap((tenant): [string, Buffer][] => [
            [formerKey(tenant, "held", 1), value],
            [formerKey(tenant, "tile/0", 0), value],
          ]),
        ]),
      );
      // Private fields beside their record.
      const grown = await whileRaw((raw) => raw.iterator().all(), "state/records");
      const seqsOf = (at: number): number[] => Array.from({ length: at === 0 ? records : 3 }, (_, seq) => seq);
      expect(grown.map(([key]) => key)).to.deep.equal(
        tenants
          .flatMap((tenant, at) => seqsOf(at).map((seq) => recordKey(tenant, seq).slice("{record}/".length)))
          .sort()
          .flatMap((key) => [key, `${key}+`]),
      );
      expect(grown.every(([, bytes]) => bytes.equals(value))).to.equal(true);
    });
  }

  for (const former of ["2", "3"]) {
    it(`is brought from \`${former}\` by whoever opens it after openings that were killed`, async () => {
      await write(former, encodeValue(text));
      const script = `import { openStore } from ${JSON.stringify(opener)};
      await openStore({ dir: ${JSON.stringify(dir)}, enabled: true });`;
      const states: string[] = [];
      for (let kills = 0; kills < roundsOf(6, 200); kills++) {
        const child = spawn(process.execPath, ["--input-type=module", "--eval", script], { stdio: "ignore" });
        const exited = once(child, "exit");
        // Some at once, some amid their batches, some when all is done.
        const killing = setTimeout(() => child.kill("SIGKILL"), Math.random() * 400);
        await exited;
        clearTimeout(killing);
        states.push(String(await whileRaw((raw) => raw.get("format"))));
      }
      const store = await openStore({ dir, enabled: true });
      expect(states).to.satisfy((each: string[]) => each.every((state) => [former, "3 from 2", "5"].includes(state)));
      for (const part of families) {
        const values = await store.values(partRange("acme", part)).all();
        expect(values, part).to.deep.equal(Array(records).fill(text));
      }
      expect(await store.keys({ gte: "acme/", lt: "acme0" }).all()).to.have.length(2);
      await store.close();
    });
  }

  for (const former of ["2", "3"]) {
    it(`leaves no byte where private fields of \`${former}\` lay, so that what is erased later is gone from the disk`, async () => {
      await write(former, encodeValue(text));
      const secrets = new Map(["acme", "~"].map((tenant) => [tenant, randomBytes(32).toString("hex")]));
      for (const [tenant, secret] of secrets) {
        await whileRaw((raw) =>
          raw.put(
            former === "2" ? formerKey(tenant, "disclosure", 1) : recordKey(tenant, 1, "disclosure"),
            encodeValue(secret),
          ),
        );
      }
      const store = await openStore({ dir, enabled: true });
      for (const [tenant, secret] of secrets) {
        expect(await store.get(recordKey(tenant, 1, "disclosure"))).to.equal(secret);
        expect(
          (await filesWith(dir, secret)).filter((path) => path.endsWith(".ldb")),
          tenant,
        ).to.have.length.at.most(1);
        await store.del(recordKey(tenant, 1, "disclosure"));
        await rewriteRange(store, partRange(tenant, "disclosure"));
        expect(await filesWith(dir, secret), tenant).to.deep.equal([]);
      }
      await store.close();
    });
  }

  it("is brought from `4`, in which nothing lies elsewhere, without a move", async () => {
    const first = await openStore({ dir, enabled: true });
    await first.put(recordKey("acme", 1), text);
    await first.put("format", "4");
    await first.close();
    const moves: number[] = [];
    const store = await openStore({ dir, enabled: true, onMoved: (entries) => moves.push(entries) });
    expect(moves).to.deep.equal([]);
    expect(await store.getMany(["format", recordKey("acme", 1)])).to.deep.equal(["5", text]);
    await store.close();
  });

  it("is moved no second time: what lies where records lay before is left alone", async () => {
    await (await openStore({ dir, enabled: true })).close();
    await whileRaw((raw) => raw.put(formerKey("acme", "record", 0), Buffer.from("x")));
    const moves: number[] = [];
    const store = await openStore({ dir, enabled: true, onMoved: (entries) => moves.push(entries) });
    expect(moves).to.deep.equal([]);
    expect(await store.get(formerKey("acme", "record", 0))).to.equal("x");
    await store.close();
  });
});

function hexOf(entries: readonly (readonly [string, Buffer])[]): ReadonlyMap<string, string> {
  return new Map(entries.map(([key, bytes]) => [key, bytes.toString("hex")]));
}

describe("the families of records", () => {
  it("lie behind the other keys of every tenant whose name begins with no `~`", () => {
    for (const tenant of tenants) {
      for (const part of families) {
        for (const other of tenants.filter((each) => each !== "~")) {
          expect(recordKey(tenant, 0, part) > `${encodeURIComponent(other)}/tile/`, `${tenant}, ${other}`).to.equal(
            true,
          );
        }
      }
    }
  });
});
