import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Level } from "level";
import type { UsageRow } from "../../../core/usage/usage-row.ts";
import { UsageStore, type UsageStoreOptions } from "../../../core/usage/usage-store.ts";

const today = "2026-11-22";

function row(principal: string, input: number, more: Partial<UsageRow> = {}): UsageRow {
  const count = { requests: 1, input, output: 0, cachedInput: 0 };
  return { day: today, principal, keyId: `key of ${principal}`, provider: "p", model: "m", ...count, ...more };
}

describe("UsageStore", () => {
  let folder: string;
  let store: Level<string, string>;
  let usages: UsageStore[];
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "usage-usage-"));
    store = new Level(folder);
    usages = [];
  });
  afterEach(async () => {
    for (const usage of usages) await usage.close().catch(() => undefined);
    await store.close();
    await rm(folder, { recursive: true });
  });

  function open(options: Partial<UsageStoreOptions> = {}): UsageStore {
    const usage = new UsageStore({
      store,
      isKept: () => false,
      onWarning: (message) => expect.fail(message),
      ...options,
    });
    usages.push(usage);
    return usage;
  }

  async function rowsOf(usage: UsageStore, tenant = "acme", from = today, to = today): Promise<readonly UsageRow[]> {
    const rows: UsageRow[] = [];
    for await (const each of usage.rows(tenant, from, to)) rows.push(each);
    return rows;
  }

  it("adds to what is written, over any number of starts", async () => {
    for (let start = 0; start < 3; start++) {
      const usage = open();
      usage.add("acme", row("a", 5, { model: "vendor/x/y" }));
      usage.add("acme", row("a", 5, { model: "vendor/x/y" }));
      await usage.close();
      await store.close();
      store = new Level(folder);
    }
    const expected = row("a", 30, { requests: 6, model: "vendor/x/y" });
    expect(await rowsOf(open())).to.deep.equal([expected]);
  });

  it("writes by itself after a while", async () => {
    open({ flushMs: 5 }).add("acme", row("a", 5));
    const reader = open();
    while ((await rowsOf(reader)).length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(await rowsOf(reader)).to.deep.equal([row("a", 5)]);
  });

  it("keeps tenants and days apart, whatever they are called", async () => {
    const usage = open();
    const tenants = ["acme", "acme/usage", "acm%65", "acme0"];
    tenants.forEach((tenant, index) => void usage.add(tenant, row("same", index + 1)));
    usage.add("acme", row("before", 1, { day: "2026-11-21" }));
    await usage.flush();
    for (const [index, tenant] of tenants.entries()) {
      expect((await rowsOf(usage, tenant)).map(({ input }) => input)).to.deep.equal([index + 1]);
    }
    const both = await rowsOf(usage, "acme", "2026-11-21", today);
    expect(both.map(({ principal }) => principal)).to.deep.equal(["before", "same"]);
  });

  it("counts those that used least together, 100,000 principals and models in all [S68]", async () => {
    const maxRows = 1_000;
    const usage = open({ maxRows });
    for (let each = 0; each < 100_000; each++) {
      usage.add("acme", row(`p${each % 50_000}`, 1, { model: `m${each}` }));
      if (each % 1_000 === 0) usage.add("acme", row("heavy", 1_000));
      if (each % 20_000 === 0) await usage.flush();
    }
    await usage.flush();
    const rows = await rowsOf(usage);
    expect(rows.length).to.be.within(maxRows / 2, maxRows);
    const sum = (pick: (each: UsageRow) => number): number => rows.reduce((total, each) => total + pick(each), 0);
    expect([sum(({ requests }) => requests), sum(({ input }) => input)]).to.deep.equal([100_100, 200_000]);
    expect(rows.find(({ principal }) => principal === "heavy")).to.include({ requests: 100, input: 100_000 });
    const other = rows.filter(({ principal }) => principal === "other");
    expect(other.map(({ provider, model, keyId }) => [provider, model, keyId])).to.deep.equal([
      ["other", "other", null],
    ]);
  });

  it("leaves the rows alone that stay", async () => {
    const usage = open({ maxRows: 20, isKept: (tenant, { keyId }) => tenant === "acme" && keyId === "key of dear" });
    usage.add("acme", row("dear", 1));
    usage.add("globex", row("dear", 1));
    for (let each = 0; each < 100; each++)
      for (const tenant of ["acme", "globex"]) usage.add(tenant, row(`p${each}`, 5));
    await usage.flush();
    const kept = async (tenant: string): Promise<boolean> =>
      (await rowsOf(usage, tenant)).some(({ principal }) => principal === "dear");
    expect([await kept("acme"), await kept("globex")]).to.deep.equal([true, false]);
  });

  it("forgets what is older than 400 days when a tenant uses something", async () => {
    const usage = open();
    usage.add("acme", row("old", 1, { day: "2025-10-18" }));
    usage.add("acme", row("older", 1, { day: "2025-10-17" }));
    usage.add("globex", row("other tenant", 1, { day: "2025-10-17" }));
    await usage.flush();
    usage.add("acme", row("new", 1, { day: "2026-11-21" }));
    await usage.flush();
    const left = await rowsOf(usage, "acme", "2025-01-01", today);
    expect(left.map(({ principal }) => principal)).to.deep.equal(["old", "new"]);
    expect(await rowsOf(usage, "globex", "2025-01-01", today)).to.have.length(1);
  });

  it("keeps what it cannot write, and writes it when it can", async () => {
    const warnings: string[] = [];
    const usage = open({ flushMs: 5, onWarning: (message) => warnings.push(message) });
    await store.close();
    usage.add("acme", row("a", 5));
    usage.add("globex", row("b", 5));
    while (warnings.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    usage.add("acme", row("a", 5));
    await store.open();
    await usage.flush();
    expect(await rowsOf(usage)).to.deep.equal([row("a", 10, { requests: 2 })]);
    expect(await rowsOf(usage, "globex")).to.deep.equal([row("b", 5)]);
    expect(new Set(warnings)).to.deep.equal(new Set(["usage_write_failed"]));
  });

  it("loses nothing that is counted while it writes", async () => {
    const usage = open();
    const flushes: Promise<void>[] = [];
    for (let each = 0; each < 500; each++) {
      usage.add("acme", row("a", 1));
      if (each % 7 === 0) flushes.push(usage.flush());
      if (each % 50 === 0) await new Promise(setImmediate);
    }
    await Promise.all(flushes);
    await usage.flush();
    expect(await rowsOf(usage)).to.deep.equal([row("a", 500, { requests: 500 })]);
  });
});
