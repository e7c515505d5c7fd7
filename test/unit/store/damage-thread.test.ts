import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { findDamageInThread } from "../../../core/store/damage-thread.ts";
import { openStore } from "../../../core/store/open.ts";

describe("findDamageInThread(folder, signal)", () => {
  let dir: string;
  let folder: string;
  const stop = new AbortController();

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "damage-thread-"));
    folder = join(dir, "state");
    const store = await openStore({ dir, enabled: true });
    for (let at = 0; at < 100; at++) await store.put(`a/${at}`, "x".repeat(1_000));
    await store.close();
  });

  afterEach(() => rm(dir, { recursive: true }));

  it("finds none in a sound store, and the damage in another", async () => {
    expect(await findDamageInThread(folder, stop.signal)).to.equal(undefined);
    const name = (await readdir(folder)).find((each) => each.endsWith(".log")) ?? "";
    const log = join(folder, name);
    const bytes = await readFile(log);
    bytes[50] = (bytes[50] ?? 0) ^ 1;
    await writeFile(log, bytes);
    expect(await findDamageInThread(folder, stop.signal)).to.include({ file: name });
  });

  it("rejects where the folder cannot be read, and once it is to stop", async () => {
    const failed = await findDamageInThread(join(dir, "none"), stop.signal).catch((error: unknown) => error);
    expect(failed).to.include({ code: "ENOENT" });
    const aborted = new AbortController();
    const running = findDamageInThread(folder, aborted.signal).catch((error: unknown) => error);
    aborted.abort("stopping");
    expect(await running).to.equal("stopping");
    expect(await findDamageInThread(folder, aborted.signal).catch((error: unknown) => error)).to.equal("stopping");
  });
});
