import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { Readable } from "node:stream";
import { expect } from "chai";
import { Level } from "level";
import { GatewayError } from "../../../core/action/error.ts";
import { openStore } from "../../../core/store/open.ts";
import { flip } from "../../support/flip.ts";
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
    expect(await second.get("format")).to.equal("5");
    await second.close();
  });

  it("takes over a store whose values are all plain text, and marks it before it writes any other", async () => {
    const plain = new Level<string, string>(join(dir, "state"));
    const value = JSON.stringify({ kind: "decision", prev_hash: "0".repeat(64), salt: "AAAAAAAAAAAAAAAAAAAAAA" });
    await plain.batch([
      { type: "put", key: "format", value: "1" },
      { type: "put", key: "acme/old", value },
    ]);
    await plain.close();
    const store = await openStore({ dir, enabled: true });
    expect(await store.get("format")).to.equal("5");
    await store.put("acme/new", value);
    expect(await store.getMany(["acme/old", "acme/new"])).to.deep.equal([value, value]);
    await store.close();
    const raw = new Level<string, Buffer>(join(dir, "state"), { valueEncoding: "buffer" });
    const [kept, compact] = await raw.getMany(["acme/old", "acme/new"]);
    await raw.close();
    expect(kept?.toString()).to.equal(value);
    expect(compact?.length).to.be.below(value.length / 2);
  });

  it("writes no file when it is not enabled", async () => {
    const store = await openStore({ dir: join(dir, "none"), enabled: false });
    await store.put("acme/key", "value");
    await store.close();
    expect(await readdir(dir)).to.deep.equal([]);
  });

  describe("when another process holds the folder", () => {
    it("refuses with STATE_UNUSABLE, and opens once the other is gone", async () => {
      const holder = await holdInChild();
      try {
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
      ["another format", "format", "6", "`6`"],
      ["no format", "acme/key", "value", "none"],
    ] as const) {
      it(`refuses ${what}`, async () => {
        const store = await openStore({ dir, enabled: true });
        await store.clear();
        await store.put(key, value);
        await store.close();
        await expectUnusable(
          `expected store format \`5\`, got ${got}; open it with the version that wrote it, or choose another folder`,
        );
        // The refusal let go of the lock.
        await expectUnusable(
          `expected store format \`5\`, got ${got}; open it with the version that wrote it, or choose another folder`,
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

    it("names the file and the place, and changes nothing", async () => {
      const table = await fillTable();
      await flip({ path: table, at: 10, bit: 3 });
      const before = await contents();
      await expectUnusable(
        `\`${dir}/state\` is damaged (${basename(table)}, byte 0: the checksum of a block does not fit); restore the newest backup`,
      );
      expect(await contents()).to.deep.equal(before);
      await flip({ path: table, at: 10, bit: 3 });
      await (await openStore({ dir, enabled: true })).close();
    });

    it("does not begin anew where the name of the manifest is gone", async () => {
      await fillTable();
      await rm(join(dir, "state", "CURRENT"));
      const before = await contents();
      const error = await rejection(openStore({ dir, enabled: true }));
      expect(error.message).to.match(
        /is damaged \(CURRENT, byte 0: it is missing beside `\d+\.(?:ldb|log)`\); restore/,
      );
      expect(await contents()).to.deep.equal(before);
    });

    it("says who holds them, where another process does", async () => {
      const table = await fillTable();
      const holder = await holdInChild();
      try {
        await flip({ path: table, at: 10, bit: 3 });
        await expectUnusable(`another process holds \`${dir}/state\`; stop it, or choose another folder`);
      } finally {
        holder.kill("SIGKILL");
        await once(holder, "close");
      }
    });
  });

  /** Writes until there is a table, and returns its path. */
  async function fillTable(): Promise<string> {
    for (let life = 0; life < 2; life++) {
      const store = await openStore({ dir, enabled: true });
      for (let each = 0; each < 100; each++) await store.put(`key-${each}`, "x".repeat(1_000));
      await store.close();
    }
    const table = (await readdir(join(dir, "state"))).find((name) => name.endsWith(".ldb"));
    return join(dir, "state", String(table));
  }

  async function contents(): Promise<readonly string[]> {
    const entries = await readdir(dir, { recursive: true, withFileTypes: true });
    const paths = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
    return Promise.all(paths.sort().map(async (path) => `${path} ${await readFile(path, "base64")}`));
  }

  async function holdInChild(): Promise<ChildProcessByStdio<null, Readable, null>> {
    const script = `import { openStore } from "${opener}"; await openStore({ dir: "${dir}", enabled: true }); console.log("held"); setInterval(() => {}, 1000);`;
    const holder = spawn(process.execPath, ["--input-type=module", "-e", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(holder.stdout, "data");
    return holder;
  }

  async function expectUnusable(detail: string): Promise<void> {
    const error = await rejection(openStore({ dir, enabled: true }));
    expect(error).to.be.instanceOf(GatewayError).and.include({ code: "STATE_UNUSABLE", detail });
  }
});
