import { cp, mkdtemp, readdir, rm, truncate } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import fc from "fast-check";
import { MemoryLevel } from "memory-level";
import { SplitLevel } from "../../../core/store/split-level.ts";
import { roundsOf } from "../../support/rounds.ts";

type Write =
  | { readonly type: "put"; readonly key: string; readonly value: string }
  | { readonly type: "del"; readonly key: string };

const heads = [
  "acme/",
  "zeta/",
  "{disclosure}/acme/",
  "{disclosure}/zeta/",
  "{piece}/acme/",
  "{piece}/zeta/",
  "{record}/acme/",
  "{record}/zeta/",
  "~/",
  "epoch",
];
const anyKey = fc.tuple(fc.constantFrom(...heads), fc.integer({ min: 0, max: 12 })).map(([head, seq]) => {
  if (head === "epoch") return head;
  // A piece has a number of its own.
  const end = head.startsWith("{piece}") ? `-a/${seq % 3}` : "";
  return head + String(seq).padStart(16, "0") + end;
});
const anyBound = fc.oneof(
  anyKey,
  fc.constantFrom(...heads, "", "{", "{disclosure}0", "{piece}0", "{record}0", "}", "\x7f"),
);
/** Some are larger than what a batch needs for all others. */
const anyValue = fc.oneof(
  { weight: 15, arbitrary: fc.string({ maxLength: 20 }) },
  { weight: 1, arbitrary: fc.constantFrom("x", "y").map((each) => each.repeat(524_288)) },
);
const anyWrite: fc.Arbitrary<Write> = fc.oneof(
  fc.record({ type: fc.constant("put" as const), key: anyKey, value: anyValue }),
  fc.record({ type: fc.constant("del" as const), key: anyKey }),
);
const anyRange = fc
  .tuple(
    fc.oneof(fc.record({ gt: anyBound }), fc.record({ gte: anyBound }), fc.constant({})),
    fc.oneof(fc.record({ lt: anyBound }), fc.record({ lte: anyBound }), fc.constant({})),
    fc.record({ reverse: fc.boolean(), limit: fc.integer({ min: 0, max: 9 }) }, { requiredKeys: [] }),
  )
  .map(([from, to, rest]) => ({ ...from, ...to, ...rest }));

describe("SplitLevel", () => {
  let folder: string;
  let store: SplitLevel;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "split-"));
    store = new SplitLevel(join(folder, "state"), {});
    await store.open();
  });

  afterEach(async () => {
    await store.close();
    await rm(folder, { recursive: true });
  });

  it("reads and lists as one database does, whatever was written, asked for, closed and opened", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(anyWrite, { maxLength: 20 }), { maxLength: 4 }),
        fc.array(anyRange, { minLength: 4, maxLength: 12 }),
        fc.array(anyKey, { maxLength: 9 }),
        fc.boolean(),
        async (batches, ranges, keys, isReopened) => {
          const model = new MemoryLevel<string, string>();
          await store.clear();
          for (const batch of batches) for (const each of [model, store]) await each.batch([...batch]);
          if (isReopened) {
            await store.close();
            await store.open();
          }
          for (const range of ranges) {
            expect(await store.iterator(range).all()).to.deep.equal(await model.iterator(range).all());
            expect(await store.keys(range).all()).to.deep.equal(await model.keys(range).all());
            const values = store.values(range);
            const listed: string[] = [];
            for (let value = await values.next(); value !== undefined; value = await values.next()) listed.push(value);
            await values.close();
            expect(listed).to.deep.equal(await model.values(range).all());
          }
          expect(await store.getMany(keys)).to.deep.equal(await model.getMany(keys));
          expect(keys.map((key) => store.getSync(key))).to.deep.equal(await model.getMany(keys));
          for (const key of keys) expect(await store.get(key)).to.equal(await model.get(key));
        },
      ),
      { numRuns: roundsOf(60, 2_000) },
    );
  });

  it("gives keys and values as bytes, and takes them", async () => {
    const asBytes = { keyEncoding: "buffer", valueEncoding: "buffer" } as const;
    const entries = ["acme/x", "{disclosure}/acme/1", "{record}/acme/1"].map(
      (key) => [Buffer.from(key), Buffer.from(`of ${key}`)] as const,
    );
    await store.batch<Buffer, Buffer>(
      entries.map(([key, value]) => ({ type: "put", key, value })),
      asBytes,
    );
    expect(await store.iterator<Buffer, Buffer>(asBytes).all()).to.deep.equal(entries);
    expect(await store.get<Buffer, Buffer>(entries[1]?.[0] as Buffer, asBytes)).to.deep.equal(entries[1]?.[1]);
  });

  it("has a batch in both databases or in neither, whatever their logs lost", async () => {
    for (let each = 0; each < 50; each++) {
      const puts = ["acme/head", `{record}/acme/${each}`, `{disclosure}/acme/${each}`];
      await store.batch(
        puts.map((key) => ({ type: "put", key, value: String(each) })),
        { sync: true } as object,
      );
    }
    for (const lost of [["state"], ["state/records"], ["state", "state/records"]]) {
      for (const kept of [0, 40, 1_000]) {
        const copy = await mkdtemp(join(tmpdir(), "split-copy-"));
        await cp(folder, copy, { recursive: true });
        for (const each of lost) {
          const [log] = (await readdir(join(copy, each))).filter((name) => name.endsWith(".log"));
          await truncate(join(copy, each, String(log)), kept);
        }
        const found = new SplitLevel(join(copy, "state"), {});
        await found.open();
        expect(await found.get("acme/head"), `${lost} ${kept}`).to.equal("49");
        for (const family of ["{record}/", "{disclosure}/"]) {
          expect(await found.keys({ gte: family, lt: family.replace("/", "0") }).all()).to.have.length(50);
        }
        await found.close();
        await rm(copy, { recursive: true });
      }
    }
  });

  it("takes a snapshot of one moment, also amid a write", async () => {
    const writeBoth = (value: string): Promise<void> =>
      store.batch([
        { type: "put", key: "acme/head", value },
        { type: "put", key: "{record}/acme/1", value },
      ]);
    await writeBoth("0");
    for (let round = 1; round <= 200; round++) {
      const writing = writeBoth(String(round));
      for (let turn = 0; turn < round % 20; turn++) await new Promise(setImmediate);
      await using snapshot = store.snapshot();
      const [head, record] = await Promise.all(
        ["acme/head", "{record}/acme/1"].map((key) => store.get(key, { snapshot })),
      );
      expect(head).to.equal(record);
      expect(await store.values({ snapshot }).all()).to.deep.equal([head, head]);
      await writing;
      expect(await store.get("acme/head", { snapshot })).to.equal(head);
    }
  });

  it("does not show what it keeps for itself", async () => {
    await store.put("acme/a", "1", { sync: true } as object);
    expect(await store.keys().all()).to.deep.equal(["acme/a"]);
    expect(await store.keys({ gt: "{record}0" }).all()).to.deep.equal([]);
    expect(await store.keys({ lt: "acme", reverse: true }).all()).to.deep.equal([]);
  });

  it("counts the bytes of private fields as their records', once", async () => {
    for (let seq = 0; seq < 40; seq++) {
      for (const family of ["{record}/", "{disclosure}/"]) {
        await store.put(`${family}acme/${String(seq).padStart(16, "0")}`, String(Math.random()).repeat(2_000));
      }
    }
    await store.compactRange("", "~");
    const [records, privates] = await Promise.all(
      ["{record}/acme", "{disclosure}/acme"].map((start) => store.approximateSize(`${start}/`, `${start}0`)),
    );
    expect(records).to.be.above(10_000);
    expect(privates).to.equal(0);
  });
});
