import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { MemoryLevel } from "memory-level";
import { sha256Hex } from "../../../../core/action/canonical-json.ts";
import { OuterMark } from "../../../../core/evidence/chain/outer-mark.ts";
import { recordKey } from "../../../../core/evidence/record/key-space.ts";
import { rejection } from "../../../support/ledger-world.ts";

describe("OuterMark", () => {
  let folder: string;
  let store: MemoryLevel<string, string>;
  let mark: OuterMark;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "outer-mark-"));
    await mkdir(join(folder, "data"));
    store = new MemoryLevel({ valueEncoding: "utf8" });
    for (let seq = 0; seq < 10; seq++) await store.put(recordKey("acme", seq), `record ${seq}`);
    await reopen();
  });

  afterEach(async () => {
    await mark.close();
    await rm(folder, { recursive: true });
  });

  async function reopen(): Promise<void> {
    mark = await OuterMark.open(join(folder, "gateway.mark"), join(folder, "data"));
  }

  function raise(seq: number): Promise<void> {
    return mark.advance([{ tenant: "acme", chain: "one", seq, head: sha256Hex(`record ${seq}`) }]);
  }

  async function find(seq: number, id: string | undefined = "one"): Promise<string> {
    const found = { tenant: "acme", id, head: { seq, hash: sha256Hex(`record ${seq}`) } };
    return (await mark.findContradiction(store, found)) ?? "none";
  }

  it("refuses a chain that is shorter, another, gone, or has another record, also after it is opened again", async () => {
    await raise(7);
    await mark.close();
    await reopen();
    expect(await find(7)).to.equal("none");
    expect(await find(9)).to.equal("none");
    expect(await find(6)).to.contain("expected record 7 or later, got 6");
    expect(await find(9, "two")).to.contain("expected chain `one`, got `two`");
    expect(
      await mark.findContradiction(store, { tenant: "acme", id: undefined, head: { seq: -1, hash: "" } }),
    ).to.contain("got no chain");
    await store.put(recordKey("acme", 7), "another");
    expect(await find(9)).to.contain("expected another record 7");
    await store.del(recordKey("acme", 7));
    expect(await find(9)).to.contain("expected another record 7");
  });

  it("is never lowered, whatever comes at once", async () => {
    await Promise.all([raise(3), raise(8), raise(5)]);
    await mark.close();
    await reopen();
    expect(await find(7)).to.contain("expected record 8 or later");
    expect(await find(8)).to.equal("none");
  });

  it("marks no chain that it found without a mark before that is adopted", async () => {
    expect(await find(5)).to.equal("none");
    expect([...mark.unmarked]).to.deep.equal(["acme"]);
    await raise(6);
    expect([...mark.tenants]).to.deep.equal([]);
    await mark.adopt([{ tenant: "acme", chain: "one", seq: 6, head: sha256Hex("record 6") }]);
    expect([[...mark.tenants], [...mark.unmarked]]).to.deep.equal([["acme"], []]);
    expect(await find(5)).to.contain("is older than its mark");
  });

  it("is a file, and no device or pipe that reads without an end", async () => {
    const pipe = join(folder, "pipe");
    execFileSync("mkfifo", [pipe]);
    for (const path of ["/dev/full", "/dev/zero", pipe]) {
      const { message } = await rejection(OuterMark.open(path, join(folder, "data")));
      expect(message).to.contain(`expected a regular file at \`${path}\``);
    }
  });

  it("is not in the data folder by a link either", async () => {
    await writeFile(join(folder, "data", "inside"), "");
    await symlink(join("data", "inside"), join(folder, "link"));
    const { message } = await rejection(OuterMark.open(join(folder, "link"), join(folder, "data")));
    expect(message).to.contain("expected `state.mark` outside `data_dir`");
  });
});
