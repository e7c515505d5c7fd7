import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { HeldSnapshot } from "../../../core/store/held-snapshot.ts";
import { openStore, type Store } from "../../../core/store/open.ts";
import { rewriteRange } from "../../../core/store/rewrite.ts";
import { filesWith } from "../../support/disk-search.ts";

describe("rewriteRange(store, range, signal)", () => {
  let dir: string;
  let store: Store;
  const range = { gte: "a/", lt: "a0" };
  const secret = randomBytes(32).toString("hex");

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "rewrite-"));
    store = await openStore({ dir, enabled: true });
    for (let at = 0; at < 200; at++) await store.put(`a/${at}`, at === 100 ? secret : randomBytes(500).toString("hex"));
    await store.put("b/1", "stays");
  });

  afterEach(async () => {
    await store.close();
    await rm(dir, { recursive: true });
  });

  it("waits for snapshots that see what was deleted, and then leaves no byte of it", async () => {
    const held = new HeldSnapshot(store);
    await store.del("a/100");
    // As the database does by itself at any time: both go down together while the snapshot sees the value.
    await (store as Store & { compactRange(gte: string, lt: string): Promise<void> }).compactRange("a/", "a0");
    expect(await filesWith(dir, secret)).to.have.length(1);
    let isOver = false;
    const rewritten = rewriteRange(store, range).then(() => {
      isOver = true;
    });
    for (let count = 0; count < 20; count++) await store.get("a/1");
    expect(isOver).to.equal(false);
    expect(await store.get("a/100", { snapshot: held.snapshot })).to.equal(secret);
    await held[Symbol.asyncDispose]();
    await rewritten;
    expect(await filesWith(dir, secret)).to.deep.equal([]);
    expect(await store.keys().all()).to.have.length(201);
  });

  it("leaves no byte of what was written and deleted since the store was new", async () => {
    for (const [key, own] of [
      ["a/100", range],
      ["{disclosure}/acme/1", { gte: "{disclosure}/acme/", lt: "{disclosure}/acme0" }],
    ] as const) {
      await store.put(key, secret);
      await store.del(key);
      expect(await filesWith(dir, secret)).to.not.be.empty;
      await rewriteRange(store, own);
      expect(await filesWith(dir, secret), key).to.deep.equal([]);
    }
  });

  it("waits no longer than its signal allows", async () => {
    await using _held = new HeldSnapshot(store);
    const stop = new AbortController();
    const rewritten = rewriteRange(store, range, stop.signal).catch((error: unknown) => error);
    stop.abort("enough");
    expect(await rewritten).to.equal("enough");
  });

  it("does nothing to a store in memory", async () => {
    const memory = await openStore({ dir, enabled: false });
    await memory.put("a/1", "one");
    await rewriteRange(memory, range);
    expect(await memory.get("a/1")).to.equal("one");
    await memory.close();
  });
});
