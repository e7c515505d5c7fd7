import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { openStore } from "../../../core/store/open.ts";
import { rejection } from "../../support/ledger-world.ts";

const run = promisify(execFile);

describe("openStore(options) on a read-only disk", () => {
  let dir: string;

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "store-"));
  });

  afterEach(() => rm(dir, { recursive: true, force: true }));

  it("refuses with STATE_UNUSABLE", async () => {
    await (await openStore({ dir, enabled: true })).close();
    await makeReadOnly(dir);
    try {
      const error = await rejection(openStore({ dir, enabled: true }));
      expect(error).to.include({ code: "STATE_UNUSABLE" });
      expect(error.message).to.match(/read-only disk; mount it writable|may not write .*; change its owner/);
    } finally {
      await makeWritable(dir);
    }
  });
});

/** Permissions do not bind root, mounts do. */
async function makeReadOnly(dir: string): Promise<void> {
  if (process.getuid?.() !== 0) return chmod(join(dir, "state"), 0o500);
  await run("mount", ["--bind", dir, dir]);
  await run("mount", ["-o", "remount,bind,ro", dir]);
}

async function makeWritable(dir: string): Promise<void> {
  if (process.getuid?.() !== 0) return chmod(join(dir, "state"), 0o700);
  await run("umount", [dir]);
}
