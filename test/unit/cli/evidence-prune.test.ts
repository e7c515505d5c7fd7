import { expect } from "chai";
import { recordKey } from "../../../core/evidence/record/key-space.ts";
import type { EventRecord } from "../../../core/evidence/record/record.ts";
import { runCommand } from "../../support/command-host.ts";
import { filesWith } from "../../support/disk-search.ts";
import { makeEvaluation, newAction } from "../../support/ledger-world.ts";
import { PruneWorld } from "../../support/prune-world.ts";
import type { Finished } from "./run.ts";

describe("gateway evidence prune", () => {
  let world: PruneWorld;

  beforeEach(async () => {
    world = await PruneWorld.create();
    world.clock.nowMs -= 365 * 86_400_000;
    await world.open();
    await world.act({}, "old"); // records 1 and 2
  });

  afterEach(() => world.remove());

  const time = "2025-05-02T02:00:00+02:00";
  const utc = "2025-05-02T00:00:00.000Z";

  function run(...args: string[]): Promise<Finished> {
    return runCommand(["evidence", ...args]);
  }

  function prune(...args: string[]): Promise<Finished> {
    return run("prune", "--data", world.dir, "--tenant", "acme", "--before", time, "--by", "dpo", ...args);
  }

  async function nextDay(): Promise<void> {
    world.clock.nowMs = Date.parse(utc);
    await world.act({}, "young");
  }

  it("deletes what is older, leaves no byte of its private fields, and the rest verifies", async () => {
    const entry = (await world.store.get(recordKey("acme", 1, "disclosure"))) ?? "";
    await nextDay();
    await world.close();
    expect(await filesWith(world.dir, entry)).to.have.length(2);
    expect(await prune("--reason", "90 days")).to.deep.equal({
      code: 0,
      stdout: "acme: pruned 2 records, the chain begins at record 3\n",
      stderr: `gateway: backups still hold what was pruned; check the rest: gateway evidence verify --data ${world.dir} --tenant acme\n`,
    });
    expect(await filesWith(world.dir, entry)).to.deep.equal([]);
    expect(await run("verify", "--data", world.dir)).to.deep.equal({
      code: 10,
      stdout: "acme: self-attested, 6 records, pruned before 3\n",
      stderr: "",
    });
    await world.open();
    expect(((await world.recordsOf()).at(-1) as EventRecord).detail).to.deep.equal({
      event: "pruned",
      before: utc,
      first_kept: 3,
      records: 2,
      by: "dpo",
      reason: "90 days",
    });
  });

  it("tells scripts by --json, and says where nothing is left to prune", async () => {
    await nextDay();
    await world.close();
    const told = { tenant: "acme", before: utc, records: 2, first_kept: 3 };
    expect(JSON.parse((await prune("--json")).stdout)).to.deep.equal(told);
    expect(await prune("--json")).to.deep.equal({
      code: 0,
      stdout: `${JSON.stringify({ ...told, records: 0 })}\n`,
      stderr: `gateway: nothing to prune: no record before ${utc} may go\n`,
    });
  });

  it("says what it had to keep, and why", async () => {
    const late = newAction();
    await world.ledger.actions.recordDecision(late, makeEvaluation(late)); // record 3
    await world.act(); // 4 and 5
    await nextDay();
    await world.close();
    const { code, stdout, stderr } = await prune();
    expect([code, stdout]).to.deep.equal([0, "acme: pruned 2 records, the chain begins at record 3\n"]);
    expect(stderr).to.include(
      `gateway: records from 3 on stay, though they are older than ${utc}: an action or approval among them is not over by record 6\n`,
    );
  });

  it("refuses while a gateway runs on the folder, and deletes nothing", async () => {
    await nextDay();
    const { code, stdout, stderr } = await prune();
    expect([code, stdout]).to.deep.equal([1, ""]);
    expect(stderr).to.include("state cannot be used: a gateway runs on");
    expect(await world.texts()).to.have.length(5);
  });

  it("refuses a tenant that is not there, a folder that is none, and a time that would leave nothing", async () => {
    await world.close();
    expect((await prune("--tenant", "globex")).stderr).to.include("expected a tenant with evidence in");
    expect((await prune("--data", `${world.dir}/none`)).code).to.equal(1);
    expect(await prune()).to.deep.equal({
      code: 1,
      stdout: "",
      stderr: `gateway: invalid params: every record is older than ${utc}: nothing would be left; choose an earlier time\n`,
    });
  });

  for (const [what, text, said] of [
    ["a time to come", "2999-01-01T00:00:00Z", "expected a past time"],
    ["no time", "yesterday", "expected an RFC 3339 time: 2026-01-31T00:00:00Z"],
    ["a time without zone", "2026-01-31T00:00:00", "expected an RFC 3339 time"],
    ["a day that there is not", "2026-02-30T00:00:00Z", "expected an RFC 3339 time"],
    ["an hour that there is not", "2026-01-31T25:00:00Z", "expected an RFC 3339 time"],
  ] as const) {
    it(`ends with 2 for ${what}`, async () => {
      const { code, stdout, stderr } = await prune("--before", text);
      expect([code, stdout]).to.deep.equal([2, ""]);
      expect(stderr).to.include(said);
    });
  }
});
