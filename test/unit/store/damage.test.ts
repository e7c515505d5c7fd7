import { randomBytes } from "node:crypto";
import { copyFile, cp, mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { expect } from "chai";
import { crc32c, maskCrc } from "../../../core/store/crc32c.ts";
import { type CheckExtent, type Damage, everything, findDamage } from "../../../core/store/damage.ts";
import { journalFile } from "../../../core/store/folder.ts";
import { openStore } from "../../../core/store/open.ts";
import { compactRange } from "../../../core/store/rewrite.ts";
import { type DataFile, dataFiles, flip, SeededChance } from "../../support/flip.ts";
import { tearNewestLog } from "../../support/torn-log.ts";

const chance = new SeededChance("damage");
const onlyEnds: CheckExtent = { wholeBytes: 0, tables: Number.POSITIVE_INFINITY };
const onlyLogs: CheckExtent = { wholeBytes: 0, tables: 0 };

describe("findDamage(folder, extent)", () => {
  let sound: string;
  let dir: string;

  before(async () => {
    sound = await mkdtemp(join(tmpdir(), "damage-sound-"));
    // Each life turns the log of the one before into a table.
    for (let life = 0; life < 3; life++) await live(sound, life);
  });

  after(() => rm(sound, { recursive: true }));

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "damage-"));
    await cp(sound, dir, { recursive: true });
  });

  afterEach(() => rm(dir, { recursive: true }));

  function find(extent: CheckExtent = everything): Promise<Damage | undefined> {
    return findDamage(join(dir, "state"), extent);
  }

  async function pathsOf(ending: RegExp): Promise<readonly string[]> {
    const names = (await readdir(join(dir, "state"))).filter((name) => ending.test(name)).sort();
    return names.map((name) => join(dir, "state", name));
  }

  /** The journal is checked where it is opened. */
  async function databaseFiles(): Promise<readonly DataFile[]> {
    return (await dataFiles(join(dir, "state"))).filter(({ path }) => !path.endsWith(journalFile));
  }

  it("finds none in a sound store: tables, logs, values larger than a mebibyte, empty ones", async () => {
    expect((await pathsOf(/\.ldb$/)).length).to.be.above(1);
    for (const extent of [everything, onlyEnds, onlyLogs]) expect(await find(extent)).to.equal(undefined);
  });

  it("finds none in a folder without a store", async () => {
    await rm(join(dir, "state"), { recursive: true });
    await mkdir(join(dir, "state"));
    expect(await find()).to.equal(undefined);
  });

  it("finds every flipped bit that is not in padding, in the file where it is", async () => {
    for (const { path, size } of await databaseFiles()) {
      const name = relative(join(dir, "state"), path);
      for (let round = 0; round < 30; round++) {
        // Every second near an end, where the footers and the heads of logs are.
        const at = round % 2 === 0 ? chance.below(size) : (4 * size + chance.below(96) - 48) % size;
        const bit = { path, at, bit: chance.below(8) };
        await flip(bit);
        const damage = await find();
        await flip(bit);
        if (damage === undefined) expect(await isPadding(path, at), `${path} ${at}`).to.equal(true);
        else if (!name.endsWith("CURRENT")) expect(damage.file).to.equal(name);
      }
    }
  });

  it("names the place: the block of a table, the record of a log", async () => {
    const [table, log] = [(await pathsOf(/\.ldb$/))[0] as string, (await pathsOf(/\.log$/))[0] as string];
    await flip({ path: table, at: 3, bit: 0 });
    expect(await find()).to.deep.equal({
      file: table.slice(-10),
      offset: 0,
      reason: "the checksum of a block does not fit",
    });
    await flip({ path: log, at: 9, bit: 0 });
    expect(await find(), "logs first").to.deep.equal({
      file: log.slice(-10),
      offset: 0,
      reason: "the checksum of a log record does not fit",
    });
  });

  it("reads as much of the tables as it is asked for", async () => {
    const table = (await pathsOf(/\.ldb$/))[0] as string;
    await flip({ path: table, at: 3, bit: 0 });
    expect(await find(onlyEnds)).to.equal(undefined);
    expect(await find({ ...everything, wholeBytes: 100 })).to.equal(undefined);
    const { size } = await stat(table);
    // Past the padding of the footer, and its magic number.
    await flip({ path: table, at: size - 48, bit: 0 });
    expect(await find(onlyEnds)).to.include({ file: table.slice(-10) });
    expect(await find(onlyLogs)).to.equal(undefined);
    await truncate(table, size - 1);
    expect(await find(onlyEnds)).to.deep.equal({
      file: table.slice(-10),
      offset: size - 1,
      reason: `expected ${size} bytes, got ${size - 1}`,
    });
    await rm(table);
    expect(await find(onlyLogs)).to.deep.equal({ file: table.slice(-10), offset: 0, reason: "it is missing" });
  });

  it("finds a file that is missing: the log, the manifest, and what says which manifest it is", async () => {
    for (const [path] of [await pathsOf(/\.log$/), await pathsOf(/^MANIFEST/), await pathsOf(/^CURRENT/)]) {
      const kept = join(dir, "kept");
      await copyFile(path as string, kept);
      await rm(path as string);
      expect(await find(onlyLogs))
        .to.have.property("reason")
        .that.matches(/^it is missing/);
      await copyFile(kept, path as string);
    }
    expect(await find()).to.equal(undefined);
  });

  it("takes the end of a log that a crash left for what it is", async () => {
    const log = (await pathsOf(/\.log$/))[0] as string;
    const { size } = await stat(log);
    const whole = await readFile(log);
    for (let round = 0; round < 40; round++) {
      const what = await tearNewestLog(dir, round % 2 === 0 ? "truncated" : "zeroed", round < 26 ? 100 : size);
      expect(await find(onlyLogs), what).to.equal(undefined);
      await writeFile(log, whole);
    }
  });

  it("finds what a crash cannot do to a log: a wrong length at its end, and a hole", async () => {
    const log = (await pathsOf(/\.log$/))[0] as string;
    const last = await lastRecordOf(log);
    for (let bit = 0; bit < 16; bit++) {
      await flip({ path: log, at: last + 4 + (bit >> 3), bit: bit & 7 });
      expect(await find(onlyLogs), `bit ${bit}`).to.include({ offset: last });
      await flip({ path: log, at: last + 4 + (bit >> 3), bit: bit & 7 });
    }
    const whole = await readFile(log);
    await writeFile(log, Buffer.concat([whole.subarray(0, 20), Buffer.alloc(40), whole.subarray(60)]));
    expect(await find(onlyLogs)).to.include({ offset: 0 });
  });

  for (const [what, types] of [
    ["an end without a beginning", [1, 4]],
    ["a middle without a beginning", [3]],
    ["a beginning after a beginning", [2, 2]],
    ["a whole after a beginning", [2, 1]],
  ] as const) {
    it(`finds a record of which a part is missing: ${what}`, async () => {
      const log = (await pathsOf(/\.log$/))[0] as string;
      await writeFile(log, Buffer.concat(types.map(fragment)));
      const offset = fragment(1).length * (types.length - 1);
      expect(await find()).to.include({ offset, reason: "a part of a log record is missing" });
    });
  }

  it("says so of garbage, whatever it is, and never throws", async () => {
    for (const { path, size } of await databaseFiles()) {
      const whole = await readFile(path);
      for (const bytes of garbageLike(size)) {
        await writeFile(path, bytes);
        expect(await find(), path).to.have.property("file");
      }
      for (const bytes of noiseIn(whole)) {
        await writeFile(path, bytes);
        await find();
      }
      await writeFile(path, whole);
    }
  });

  it("finds none in a store that is written to and rewritten meanwhile", async () => {
    const store = await openStore({ dir, enabled: true });
    let isOver = false;
    const writing = (async () => {
      for (let round = 0; round < 12; round++) {
        for (let each = 0; each < 20; each++) await store.put(`live/${each}`, randomBytes(20_000).toString("hex"));
        await compactRange(store, { gte: "", lt: "~" });
      }
      isOver = true;
    })();
    let checks = 0;
    for (; !isOver; checks++) expect(await find()).to.equal(undefined);
    await writing;
    await store.close();
    expect(checks).to.be.above(1);
  });
});

/** Fills a store and closes it. */
async function live(dir: string, life: number): Promise<void> {
  const store = await openStore({ dir, enabled: true });
  if (life === 0) await store.put("large", randomBytes(550_000).toString("hex"));
  for (let each = 0; each < 300; each++) {
    const value = each % 7 === 0 ? "" : `${each} `.repeat(chance.below(400));
    await store.batch([{ type: "put", key: `key/${chance.below(1_000)}`, value }]);
  }
  // The last byte of a log is zero then, in a sound record.
  await store.put("empty", "");
  await store.close();
}

/** The rest of a block of a log, and what is between the places in a table's footer and its magic number. */
async function isPadding(path: string, at: number): Promise<boolean> {
  const { size } = await stat(path);
  return path.endsWith(".ldb") ? at >= size - 48 && at < size - 8 : at % 32_768 >= 32_768 - 6;
}

/** A fragment of a log, with its checksum. */
function fragment(type: number): Buffer {
  const bytes = Buffer.from(`0000000${type}some bytes of a batch`);
  bytes[6] = type;
  bytes.writeUInt16LE(bytes.length - 7, 4);
  bytes.writeUInt32LE(maskCrc(crc32c(bytes.subarray(6))));
  return bytes;
}

/** The offset of the last record of a log. */
async function lastRecordOf(log: string): Promise<number> {
  const bytes = await readFile(log);
  let last = 0;
  for (let at = 0; at + 7 <= bytes.length; ) {
    const left = 32_768 - (at % 32_768);
    if (left < 7) at += left;
    else {
      last = at;
      at += 7 + bytes.readUInt16LE(at + 4);
    }
  }
  return last;
}

/** Files of the same size that hold nothing of what they should. */
function garbageLike(size: number): readonly Buffer[] {
  return [randomBytes(size), Buffer.alloc(size, 0xff), Buffer.alloc(size, 1)];
}

/** The same with some bytes of noise in it. */
function* noiseIn(whole: Buffer): Generator<Buffer> {
  for (let round = 0; round < 8; round++) {
    const noise = Buffer.from(whole);
    const from = chance.below(whole.length);
    randomBytes(Math.min(whole.length - from, 1 + chance.below(40))).copy(noise, from);
    yield noise;
  }
}
