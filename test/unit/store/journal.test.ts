import { cp, mkdtemp, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { DamageError } from "../../../core/store/file-window.ts";
import { Journal, type JournalWrite } from "../../../core/store/journal.ts";
import { flip } from "../../support/flip.ts";
import { rejection } from "../../support/ledger-world.ts";

const halfBytes = 1_048_576;
const pageBytes = 4_096;

describe("Journal", () => {
  let folder: string;
  let path: string;
  /** Batches that were appended since a journal was opened, and those that its databases were asked to keep. */
  let persisted: number;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "journal-"));
    path = join(folder, "journal");
    persisted = 0;
  });

  afterEach(() => rm(folder, { recursive: true }));

  const persist = async (): Promise<void> => {
    persisted++;
  };

  /** Opens the file; `taken` gets its batches. */
  function openJournal(taken: (readonly JournalWrite[])[] = [], written = 0): Promise<Journal> {
    return Journal.open({ path, persist }, written, async (writes) => {
      taken.push(writes.map(({ key, value }) => ({ key, value: value && Buffer.from(value) })));
    });
  }

  /** Long values are of those that are not deflated. */
  function batchOf(turn: number, bytes = 100): readonly JournalWrite[] {
    const value = Buffer.alloc(bytes, turn);
    if (bytes > pageBytes / 2) value[0] = 0xf8;
    return [
      { key: `clé/${turn}`, value },
      { key: "text", value: Buffer.from("again and ".repeat(bytes / 10)) },
      { key: "gone", value: null },
      { key: "empty", value: Buffer.alloc(0) },
    ];
  }

  /** Opens a copy, as after a process that was killed, and returns the turns of its batches, which are as they were appended. */
  async function turnsAfterKill(bytes = 100): Promise<readonly number[]> {
    const copy = await mkdtemp(join(tmpdir(), "journal-copy-"));
    try {
      await cp(path, join(copy, "journal"));
      const taken: (readonly JournalWrite[])[] = [];
      const journal = await Journal.open({ path: join(copy, "journal"), persist }, 0, async (writes) => {
        taken.push(writes);
      });
      await journal.close();
      return taken.filter((writes) => writes.length > 0).map((writes) => turnOf(writes, bytes));
    } finally {
      await rm(copy, { recursive: true });
    }
  }

  function turnOf(writes: readonly JournalWrite[], bytes: number): number {
    const turn = Number(writes[0]?.key.slice("clé/".length));
    expect(writes.map(({ key, value }) => [key, value && Buffer.from(value).toString("hex")])).to.deep.equal(
      batchOf(turn, bytes).map(({ key, value }) => [key, value && Buffer.from(value).toString("hex")]),
    );
    return turn;
  }

  for (const sync of [true, false]) {
    it(`has every batch after a kill, in its order, ${sync ? "synced" : "written"}`, async () => {
      const journal = await openJournal();
      for (let turn = 1; turn <= 20; turn++) expect(await journal.append(batchOf(turn), sync)).to.equal(turn);
      expect(await turnsAfterKill()).to.deep.equal(Array.from({ length: 20 }, (_, at) => at + 1));
      await journal.close();
    });
  }

  it("has none once it was closed: the databases were asked to keep them before", async () => {
    const journal = await openJournal();
    await journal.append(batchOf(1), true);
    expect(persisted).to.equal(0);
    await journal.close();
    expect(persisted).to.be.above(0);
    expect(await turnsAfterKill()).to.deep.equal([]);
  });

  it("keeps them where the databases cannot: the next opening has them", async () => {
    const journal = await Journal.open(
      { path, persist: () => Promise.reject(new Error("no disk")) },
      0,
      async () => {},
    );
    await journal.append(batchOf(1), true);
    await journal.close();
    expect(await turnsAfterKill()).to.deep.equal([1]);
  });

  it("lets go of a half only once the databases keep what it has", async () => {
    let release = (): void => {};
    let asked = 0;
    const journal = await Journal.open(
      {
        path,
        persist: () => {
          asked++;
          return new Promise((resolve) => {
            release = resolve;
          });
        },
      },
      0,
      async () => {},
    );
    const [bytes, perHalf] = [pageBytes - 200, halfBytes / pageBytes];
    for (let turn = 1; turn <= 2 * perHalf; turn++) await journal.append(batchOf(turn, bytes), true);
    expect(asked).to.equal(1);
    let isDone = false;
    const over = journal.append(batchOf(2 * perHalf + 1, bytes), true).then(() => {
      isDone = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(isDone).to.equal(false);
    expect(await turnsAfterKill(bytes)).to.have.length(2 * perHalf);
    release();
    await over;
    expect(await turnsAfterKill(bytes)).to.deep.equal(Array.from({ length: perHalf + 1 }, (_, at) => perHalf + 1 + at));
    release();
    const closing = journal.close();
    await new Promise((resolve) => setTimeout(resolve, 50));
    release();
    await closing;
  });

  it("goes round and round: after any number of batches it has the newest, at least a half of them", async () => {
    const journal = await openJournal();
    const sizes = [100, 9_000, 70_000, 200_000];
    for (let turn = 1; turn <= 400; turn++) {
      await journal.append(batchOf(turn, sizes[turn % sizes.length]), turn % 3 === 0);
      if (turn % 37 !== 0) continue;
      const taken: (readonly JournalWrite[])[] = [];
      const copy = `${path}-copy`;
      await cp(path, copy);
      await (
        await Journal.open({ path: copy, persist }, 0, async (writes) => {
          taken.push(writes);
        })
      ).close();
      const turns = taken.map(([first]) => Number(first?.key.slice("clé/".length)));
      const oldest = turns[0] ?? 0;
      expect(turns).to.deep.equal(Array.from({ length: turn - oldest + 1 }, (_, at) => oldest + at));
    }
    await journal.close();
    expect((await stat(path)).size).to.equal(2 * halfBytes);
  });

  it("takes a batch that is larger than a half, and gives the room back", async () => {
    const journal = await openJournal();
    for (let turn = 1; turn <= 3; turn++) await journal.append(batchOf(turn, 3 * halfBytes), true);
    expect(await turnsAfterKill(3 * halfBytes)).to.include(3);
    for (let turn = 4; turn <= 20; turn++) await journal.append(batchOf(turn, 200_000), true);
    expect((await stat(path)).size).to.equal(2 * halfBytes);
    await journal.close();
  });

  it("leaves a batch out that was not written to its end, and goes on behind those before it", async () => {
    const journal = await openJournal();
    for (let turn = 1; turn <= 3; turn++) await journal.append(batchOf(turn, 10_000), true);
    const whole = await readFile(path);
    for (const kept of [0, 1, 4_095, 4_096, 8_192, 10_000]) {
      const torn = Buffer.from(whole);
      torn.fill(0, 2 * 3 * pageBytes + kept);
      await writeFile(path, torn);
      expect(await turnsAfterKill(10_000), String(kept)).to.deep.equal([1, 2]);
    }
    const taken: (readonly JournalWrite[])[] = [];
    const next = await openJournal(taken);
    await next.append(batchOf(3), true);
    expect(taken).to.have.length(2);
    const after: (readonly JournalWrite[])[] = [];
    await (await openJournal(after)).close();
    expect(after.map(([first]) => first?.key)).to.deep.equal(["clé/1", "clé/2", "clé/3"]);
    await next.close().catch(() => undefined);
    await journal.close().catch(() => undefined);
  });

  it("is damaged where a batch cannot be read that others follow, or that the databases have", async () => {
    const journal = await openJournal();
    for (let turn = 1; turn <= 5; turn++) await journal.append(batchOf(turn), true);
    for (let turn = 1; turn <= 5; turn++) {
      const bit = { path, at: (turn - 1) * pageBytes + 60, bit: 3 };
      await flip(bit);
      const error = await rejection(openJournal([], 5));
      expect(error).to.be.instanceOf(DamageError);
      expect(error.message).to.match(turn === 5 ? /^expected batch 5 or later, got 4/ : /^expected no batch after/);
      await flip(bit);
    }
    await truncate(path, 0);
    expect((await rejection(openJournal([], 5))).message).to.equal("expected batch 5 or later, got 0");
    await journal.close();
  });

  it("leaves no byte of a batch when it is erased", async () => {
    const journal = await openJournal();
    const secret = Buffer.from("the name of a patient");
    for (let turn = 1; turn <= 40; turn++) {
      await journal.append([{ key: "k", value: Buffer.concat([Buffer.alloc(60_000), secret]) }], true);
    }
    await journal.append([{ key: "k", value: Buffer.concat([Buffer.alloc(2 * halfBytes), secret]) }], true);
    expect((await readFile(path)).includes(secret)).to.equal(true);
    await journal.erase();
    expect((await readFile(path)).includes(secret)).to.equal(false);
    expect(await turnsAfterKill()).to.deep.equal([]);
    await journal.append(batchOf(43), true);
    expect(await turnsAfterKill()).to.deep.equal([43]);
    await journal.close();
  });

  it("is a file for its owner, of pages that were written before", async () => {
    await (await openJournal()).close();
    const { mode, size, blocks } = await stat(path);
    expect([mode & 0o777, size]).to.deep.equal([0o600, 2 * halfBytes]);
    expect(blocks * 512).to.be.at.least(size);
  });
});
