import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect } from "chai";
import type { ActionRecord } from "../../core/evidence/record/record.ts";
import type { VerifyReport } from "../../core/evidence/verify/verification.ts";
import { DiskFault } from "../support/disk-fault.ts";
import { LedgerWorld } from "../support/ledger-world.ts";

const run = promisify(execFile);
const program = fileURLToPath(new URL("./evidence-disk-child.js", import.meta.url));

interface Said {
  readonly before: number;
  /** While the disk failed. */
  readonly during: { readonly acknowledged: number; readonly refused: readonly string[] };
  /** Acknowledged once the ledger had mended itself. */
  readonly mended: number;
  readonly acknowledged: readonly string[];
  readonly outcome: string;
  readonly interrupted: string;
  readonly report: VerifyReport;
  readonly warnings: readonly string[];
}

const { ENOSPC, EIO } = constants.errno;
const faults: readonly (readonly [string, string])[] = [
  ["the store's disk is full in the middle of a record", `write ${ENOSPC} /state/`],
  ["the store cannot be written", `write ${EIO} /state/`],
  ["the store cannot be synced", `sync ${EIO} /state/`],
  ["the marks' disk is full in the middle of a mark", `write ${ENOSPC} /high-water`],
  ["the marks cannot be synced", `sync ${EIO} /high-water`],
];

describe("when the disk fails under load", () => {
  let folder: string;
  let disk: DiskFault;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "disk-fault-"));
    disk = await DiskFault.compile(folder);
  });

  after(() => rm(folder, { recursive: true }));

  for (const [what, fault] of faults) {
    it(`because ${what}: refuses, mends itself, and keeps every promise`, async () => {
      const world = await LedgerWorld.create();
      try {
        const said = await breakDisk(world.dir, fault);
        expectRefused(said);
        expect(said.report).to.include({ ok: true });
        await world.open();
        expect(await world.ledger.verify("acme")).to.include({ ok: true });
        expectPromisesKept(
          said,
          (await world.recordsOf()).filter((each): each is ActionRecord => "action" in each),
        );
      } finally {
        await world.remove();
      }
    });
  }

  async function breakDisk(dir: string, fault: string): Promise<Said> {
    const env = { ...process.env, ...disk.env, FAULT_FILE: join(dir, "fault") };
    // It kills itself once it has spoken: nothing is flushed by a tidy end.
    const { stdout } = await run(process.execPath, [program, dir, fault], { env, timeout: 30_000 }).catch(
      (error: { stdout: string; stderr: string }) => {
        if (error.stdout === "") throw new Error(error.stderr);
        return error;
      },
    );
    return JSON.parse(stdout) as Said;
  }
});

function expectRefused(said: Said): void {
  const { acknowledged, refused } = said.during;
  expect(acknowledged, "acknowledged while the disk failed").to.equal(said.before);
  expect(refused).to.have.length(23);
  expect(new Set(refused)).to.deep.equal(new Set(["EVIDENCE_UNAVAILABLE"]));
  expect(said.outcome).to.equal("EVIDENCE_UNAVAILABLE");
  expect(said.acknowledged.length).to.equal(said.mended + 20);
  expect(said.warnings).to.include.members(["evidence_write_failed", "evidence_repair_failed", "evidence_repaired"]);
}

function expectPromisesKept(said: Said, records: readonly ActionRecord[]): void {
  const effects = (id: string, kind: string): string[] =>
    records.filter((each) => each.kind === kind && each.action.id === id).map((each) => each.effect);
  for (const id of said.acknowledged) {
    expect(effects(id, "decision"), id).to.deep.equal(["dispatched"]);
    expect(effects(id, "outcome"), id).to.deep.equal([id === said.interrupted ? "unknown" : "success"]);
  }
  const acknowledged = new Set(said.acknowledged);
  for (const each of records.filter((record) => record.kind === "decision" && !acknowledged.has(record.action.id))) {
    expect(effects(each.action.id, "outcome"), "kept though refused").to.deep.equal(["unknown"]);
  }
}
