import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import { openStore } from "../../../core/store/open.ts";
import { rejection } from "../../support/ledger-world.ts";

const opener = new URL("../../../core/store/open.js", import.meta.url).href;

describe("openStore(options)", () => {
  let dir: string;

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "store-"));
  });

  afterEach(() => rm(dir, { recursive: true, force: true }));

  it("creates the data folder and its `state`, for this user alone", async () => {
    const store = await openStore({ dir: join(dir, "a", "b"), enabled: true });
    await store.close();
    for (const folder of ["a", "a/b", "a/b/state"]) {
      expect((await stat(join(dir, folder))).mode & 0o777, folder).to.equal(0o700);
    }
  });

  it("keeps what was written", async () => {
    const first = await openStore({ dir, enabled: true });
    await first.put("acme/key", "value");
    await first.close();
    const second = await openStore({ dir, enabled: true });
    expect(await second.get("acme/key")).to.equal("value");
    expect(await second.get("format")).to.equal("1");
    await second.close();
  });

  it("writes no file when it is not enabled", async () => {
    const store = await openStore({ dir: join(dir, "none"), enabled: false });
    await store.put("acme/key", "value");
    await store.close();
    expect(await readdir(dir)).to.deep.equal([]);
  });

  describe("when another process holds the folder", () => {
    it("refuses with STATE_UNUSABLE, and opens once the other is gone", async () => {
      const script = `import { openStore } from "${opener}"; await openStore({ dir: "${dir}", enabled: true }); console.log("held"); setInterval(() => {}, 1000);`;
      const holder = spawn(process.execPath, ["--input-type=module", "-e", script], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      try {
        await once(holder.stdout, "data");
        await expectUnusable(`another process holds \`${dir}/state\`; stop it, or choose another folder`);
      } finally {
        holder.kill("SIGKILL");
        await once(holder, "close");
      }
      await (await openStore({ dir, enabled: true })).close();
    });
  });

  describe("when this process holds it already", () => {
    it("refuses the second", async () => {
      const first = await openStore({ dir, enabled: true });
      await expectUnusable(`another process holds \`${dir}/state\`; stop it, or choose another folder`);
      await first.close();
    });
  });

  describe("when the path is not a folder", () => {
    it("says so", async () => {
      await writeFile(join(dir, "state"), "");
      await expectUnusable(`expected \`${dir}/state\` to be a folder, got a file`);
    });
  });

  describe("when something else wrote the store", () => {
    for (const [what, key, value, got] of [
      ["another format", "format", "2", "`2`"],
      ["no format", "acme/key", "value", "none"],
    ] as const) {
      it(`refuses ${what}`, async () => {
        const store = await openStore({ dir, enabled: true });
        await store.clear();
        await store.put(key, value);
        await store.close();
        await expectUnusable(
          `expected store format \`1\`, got ${got}; open it with the version that wrote it, or choose another folder`,
        );
        // The refusal let go of the lock.
        await expectUnusable(
          `expected store format \`1\`, got ${got}; open it with the version that wrote it, or choose another folder`,
        );
      });
    }
  });

  describe("when its files are damaged", () => {
    it("says so and names the next step", async () => {
      await (await openStore({ dir, enabled: true })).close();
      await writeFile(join(dir, "state", "CURRENT"), "nonsense");
      const error = await rejection(openStore({ dir, enabled: true }));
      expect(error).to.include({ code: "STATE_UNUSABLE" });
      expect(error.message).to.match(/is damaged \(.*\); restore the newest backup$/);
    });
  });

  async function expectUnusable(detail: string): Promise<void> {
    const error = await rejection(openStore({ dir, enabled: true }));
    expect(error).to.be.instanceOf(GatewayError).and.include({ code: "STATE_UNUSABLE", detail });
  }
});
