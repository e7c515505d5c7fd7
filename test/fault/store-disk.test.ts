import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { DiskFault } from "../support/disk-fault.ts";

const run = promisify(execFile);
const engine = new URL("../../core/store/split-level.js", import.meta.url).href;

describe("a store whose disk fails", () => {
  let folder: string;
  let disk: DiskFault;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "store-disk-"));
    disk = await DiskFault.compile(folder);
  });

  after(() => rm(folder, { recursive: true }));

  for (const [what, fault, isThere] of [
    ["the journal takes half a batch", `write ${constants.errno.ENOSPC} /journal`, false],
    ["the journal cannot be synced", `sync ${constants.errno.EIO} /journal`, true],
    ["the records' database cannot be written", `write ${constants.errno.EIO} /records/`, true],
  ] as const) {
    it(`because ${what}: takes no write until it was opened again, and then has a batch whole or not at all [S46]`, async () => {
      const dir = await mkdtemp(join(folder, "data-"));
      const script = `
        import { rm, writeFile } from "node:fs/promises";
        import { SplitLevel } from ${JSON.stringify(engine)};
        const store = new SplitLevel(${JSON.stringify(join(dir, "state"))}, {});
        const keys = ["acme/head", "{record}/acme/1"];
        const write = (value) => store.batch(keys.map((key) => ({ type: "put", key, value })), { sync: true });
        const said = (promise) => promise.then(() => "written", () => "refused");
        const told = [];
        await write("before");
        await writeFile(process.env.FAULT_FILE, ${JSON.stringify(fault)});
        told.push(await said(write("x".repeat(9_000))));
        await rm(process.env.FAULT_FILE);
        told.push(await said(write("meanwhile")), await said(store.put("acme/other", "1", { sync: true })));
        await store.close();
        await store.open();
        told.push(...(await store.getMany(keys)).map((value) => value.slice(0, 6)));
        told.push(await said(write("after")), ...(await store.getMany(keys)));
        await store.close();
        console.log(JSON.stringify(told));`;
      const env = { ...process.env, ...disk.env };
      const { stdout } = await run(process.execPath, ["--input-type=module", "-e", script], { env });
      const found = isThere ? "xxxxxx" : "before";
      const refused = ["refused", "refused", "refused"];
      expect(JSON.parse(stdout)).to.deep.equal([...refused, found, found, "written", "after", "after"]);
    });
  }
});
