import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { openStore } from "../../core/store/open.ts";
import type { UsageRow } from "../../core/usage/usage-row.ts";
import { UsageStore } from "../../core/usage/usage-store.ts";

const child = fileURLToPath(new URL("usage-child.js", import.meta.url));
const [rounds, batch] = [5, 100];

describe("usage that was written before a kill -9", () => {
  let dir: string;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "usage-kill-"));
  });
  afterEach(() => rm(dir, { recursive: true }));

  /** Lets a process count until it says `lines` times that something is written; the last number that it said. */
  async function countAndKill(lines: number): Promise<number> {
    const counter = spawn(process.execPath, [child, dir], { stdio: ["ignore", "pipe", "inherit"] });
    const exited = once(counter, "exit");
    let [said, written] = [0, 0];
    for await (const line of createInterface({ input: counter.stdout })) {
      written = Number(line);
      if (++said === lines) counter.kill("SIGKILL");
    }
    await exited;
    return written;
  }

  async function readAll(): Promise<readonly UsageRow[]> {
    const store = await openStore({ dir, enabled: true });
    const usage = new UsageStore({ store, isKept: () => false, onWarning: (message) => expect.fail(message) });
    const rows: UsageRow[] = [];
    for await (const row of usage.rows("acme", "2026-11-22", "2026-11-22")) rows.push(row);
    await usage.close();
    await store.close();
    return rows;
  }

  it("is there, added up over every start, and each row is whole", async () => {
    let written = 0;
    for (let round = 1; round <= rounds; round++) {
      written += await countAndKill(round * 5);
      const [row, ...others] = await readAll();
      expect(others).to.deep.equal([]);
      expect(row?.requests).to.be.within(written, written + batch);
      expect([row?.input, row?.output]).to.deep.equal([2 * (row?.requests ?? 0), 3 * (row?.requests ?? 0)]);
      written = row?.requests ?? 0;
    }
  });
});
