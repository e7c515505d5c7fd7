import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import { openStore } from "../../../core/store/open.ts";
import { openSnapshot } from "../../../core/store/snapshot.ts";
import { flip } from "../../support/flip.ts";
import { rejection } from "../../support/ledger-world.ts";

const opener = new URL("../../../core/store/open.js", import.meta.url).href;

describe("openSnapshot(dir)", () => {
  let dir: string;

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "snapshot-"));
  });
  afterEach(() => rm(dir, { recursive: true, force: true }));

  async function fill(): Promise<void> {
    const store = await openStore({ dir, enabled: true });
    for (let each = 0; each < 100; each++) await store.put(`key-${each}`, "x".repeat(1_000));
    await store.close();
  }

  /** Every file below the folder with its content and time of change. */
  async function contents(): Promise<readonly string[]> {
    const files = (await readdir(dir, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
    const told = files.map(async ({ parentPath, name }) => {
      const path = join(parentPath, name);
      return `${path} ${(await stat(path)).mtimeMs} ${(await readFile(path)).toString("base64")}`;
    });
    return (await Promise.all(told)).sort();
  }

  it("reads what is there, and leaves the folder as it was, byte for byte", async () => {
    await fill();
    const before = await contents();
    const snapshot = await openSnapshot(dir);
    expect(await snapshot.store.get("key-99")).to.equal("x".repeat(1_000));
    await snapshot.store.put("key-99", "changed");
    await snapshot.store.clear();
    await snapshot.close();
    expect(await contents()).to.deep.equal(before);
    const again = await openStore({ dir, enabled: true });
    expect(await again.get("key-99")).to.equal("x".repeat(1_000));
    await again.close();
  });

  it("refuses a folder on which a gateway runs, and leaves nothing behind", async () => {
    await fill();
    const program = `import { openStore } from ${JSON.stringify(opener)};
      await openStore({ dir: ${JSON.stringify(dir)}, enabled: true }); console.log("open"); setInterval(() => {}, 1e6);`;
    const holder = spawn(process.execPath, ["--input-type=module", "-e", program]);
    try {
      await once(holder.stdout, "data");
      const error = await rejection(openSnapshot(dir));
      expect(error)
        .to.be.instanceOf(GatewayError)
        .and.include({
          code: "STATE_UNUSABLE",
          detail: `a gateway runs on \`${dir}\`; stop it, or ask it: its admin port verifies too`,
        });
      expect(await readdir(dir)).to.deep.equal(["state"]);
    } finally {
      holder.kill("SIGKILL");
      await once(holder, "exit");
    }
  });

  it("reads every block first, however many a start would leave out, and names the folder that was asked for", async () => {
    await fill();
    await (await openStore({ dir, enabled: true })).close();
    const table = String((await readdir(join(dir, "state"))).find((name) => name.endsWith(".ldb")));
    await flip({ path: join(dir, "state", table), at: 10, bit: 3 });
    const before = await contents();
    expect(await rejection(openSnapshot(dir))).to.include({
      code: "STATE_UNUSABLE",
      detail: `\`${dir}/state\` is damaged (${table}, byte 0: the checksum of a block does not fit); restore the newest backup`,
    });
    expect(await contents()).to.deep.equal(before);
  });

  it("refuses a folder without a store, and makes none", async () => {
    expect(await rejection(openSnapshot(dir))).to.include({ code: "STATE_UNUSABLE" });
    expect(await readdir(dir)).to.deep.equal([]);
  });
});
