import { link } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import type { ActionEnvelope } from "../../../core/action/envelope.ts";
import { recordKey } from "../../../core/evidence/record/key-space.ts";
import type { ActionRecord, EventRecord } from "../../../core/evidence/record/record.ts";
import { copyStoreFiles } from "../../../core/store/folder.ts";
import { runCommand } from "../../support/command-host.ts";
import { filesWith } from "../../support/disk-search.ts";
import { LedgerWorld } from "../../support/ledger-world.ts";
import type { Finished } from "./run.ts";

const reason = ["--reason", "asked by letter", "--by", "dpo"];

describe("gateway evidence erase", () => {
  let world: LedgerWorld;
  let anna: ActionEnvelope;

  beforeEach(async () => {
    world = await LedgerWorld.create();
    await world.open();
    anna = await world.act({ arguments: { patient: "Anna", dose: 5 } }, "anna"); // records 1 and 2
  });

  afterEach(() => world.remove());

  function erase(...args: string[]): Promise<Finished> {
    return runCommand(["evidence", "erase", "--data", world.dir, "--tenant", "acme", ...reason, ...args]);
  }

  it("erases a session's fields, leaves no byte of them in the folder, and keeps the chain sound", async () => {
    const entries = await Promise.all([1, 2].map((seq) => world.store.get(recordKey("acme", seq, "disclosure"))));
    await world.close();
    for (const entry of entries) expect(await filesWith(world.dir, entry ?? "")).to.have.length(2);
    expect(await erase("--session", anna.session.id, "--field", "arguments.*", "--field", "output.*")).to.deep.equal({
      code: 0,
      stdout: "acme: erased 3 fields in 2 records\n",
      stderr: "",
    });
    for (const entry of entries) expect(await filesWith(world.dir, entry ?? "")).to.deep.equal([]);
    await world.open();
    const record = (await world.recordsOf()).at(-1) as EventRecord;
    expect(record.detail).to.deep.equal({
      event: "erased",
      seqs: [1, 2],
      fields: ["arguments.*", "output.*"],
      reason: "asked by letter",
      by: "dpo",
    });
    expect(await world.ledger.verify("acme")).to.include({ ok: true });
  });

  it("erases one record's field and leaves the others; tells scripts by --json", async () => {
    await world.close();
    const { code, stdout } = await erase("--seq", "1", "--field", "arguments.patient", "--json");
    expect([code, stdout]).to.deep.equal([0, '{"tenant":"acme","fields":1,"seqs":[1]}\n']);
    await world.open();
    const { arguments: left } = await world.ledger.disclosure((await world.recordsOf())[1] as ActionRecord);
    expect(left?.map(({ value }) => value)).to.have.members([5, undefined]);
  });

  it("ends with 1 where nothing was left to erase", async () => {
    await world.close();
    expect(await erase("--seq", "1", "--field", "arguments.patent")).to.deep.equal({
      code: 1,
      stdout: "",
      stderr: "gateway: nothing erased: no stored field of these records matches\n",
    });
  });

  it("removes what a killed verification left, for its links keep the old bytes", async () => {
    const entry = (await world.store.get(recordKey("acme", 1, "disclosure"))) ?? "";
    await world.close();
    await copyStoreFiles(join(world.dir, "state"), join(world.dir, ".snapshot-killed"), link);
    expect(await filesWith(world.dir, entry)).to.have.length(4);
    expect((await erase("--seq", "1", "--field", "*")).code).to.equal(0);
    expect(await filesWith(world.dir, entry)).to.deep.equal([]);
  });

  it("refuses while a gateway runs on the folder, and erases nothing", async () => {
    const { code, stdout, stderr } = await erase("--seq", "1", "--field", "*");
    expect([code, stdout]).to.deep.equal([1, ""]);
    expect(stderr).to.include("state cannot be used: a gateway runs on");
    expect((await world.recordsOf()).some(({ kind }) => kind === "redaction")).to.equal(false);
  });

  it("refuses a tenant and a record that are not there", async () => {
    await world.close();
    const foreign = await erase("--tenant", "globex", "--seq", "1", "--field", "*");
    expect(foreign.code).to.equal(1);
    expect(foreign.stderr).to.include("expected a tenant with evidence in");
    expect(await erase("--seq", "99", "--field", "*")).to.deep.include({
      code: 1,
      stderr: "gateway: not found: the tenant has no record 99\n",
    });
  });

  for (const [what, args, said] of [
    ["neither session nor record", ["--field", "*"], "error: expected `--session <name>` or `--seq <number>`"],
    ["both", ["--session", "s", "--seq", "1", "--field", "*"], "option '--session <name>' cannot be used with option"],
    [
      "another member",
      ["--seq", "1", "--field", "argument.a"],
      "expected `arguments.<name>`, `output.<name>`, `facts.<name>` or `*`",
    ],
    ["no number", ["--seq", "-1", "--field", "*"], "expected the number of a record"],
    ["no reason", ["--seq", "1", "--field", "*", "--reason", ""], "expected 1 to 1024 characters"],
  ] as const) {
    it(`ends with 2 for ${what}`, async () => {
      const { code, stdout, stderr } = await erase(...args);
      expect([code, stdout]).to.deep.equal([2, ""]);
      expect(stderr).to.include(said);
    });
  }
});
