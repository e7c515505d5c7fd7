import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { runProgram } from "../../support/program.ts";
import { eventually, ReplicaSite, type Sent, say, sayOutage } from "../../support/replica-site.ts";
import { roundsOf } from "../../support/rounds.ts";

const leaseMs = roundsOf(2_000, 10_000);

describe("a database whose disk is full", () => {
  let site: ReplicaSite;
  let disk: string;

  before(async () => {
    disk = await mkdtemp(join(tmpdir(), "disk-"));
    await run("mount", ["-t", "tmpfs", "-o", "size=160m,mode=755", "tmpfs", disk]);
    const data = join(disk, "postgresql");
    await run("mkdir", [data]);
    site = await ReplicaSite.create(leaseMs, { postgres: { folder: data } });
    await Promise.all([0, 1].map((index) => site.group.start(index)));
    await site.serves();
  });

  after(async () => {
    await site.stop();
    await run("umount", [disk]);
    await rm(disk, { recursive: true });
  });

  for (let round = 1; round <= roundsOf(1, 30); round++) {
    it(`has calls refused and not dispatched, and served again once there is room (${round}) [S87]`, async () => {
      const { postgres } = site.group;
      const filler = join(disk, "filler");
      await fill(filler);
      const sent: Sent[] = [];
      const refused = (): readonly Sent[] => sent.filter(({ end }) => end === "EVIDENCE_UNAVAILABLE");
      await eventually("calls that are refused", async () => {
        const turns = [0, 1, 0, 1].map((at, turn) => site.call(site.url(at), `full-${round}-${sent.length}-${turn}`));
        sent.push(...(await Promise.all(turns)));
        return refused().length >= 12;
      });
      const last = refused().slice(-6);
      const reached = await site.reached();
      for (const { mark } of last) expect(reached).to.not.include(mark);

      await rm(filler);
      const freedMs = performance.now();
      // PostgreSQL ends where its log has no room; whoever runs it starts it again.
      say(
        `the server ${postgres.isRunning ? "went on" : "had ended"}; ${sent.length - refused().length} of ${sent.length} calls were served`,
      );
      if (!postgres.isRunning) await postgres.resume();
      const again = [
        ...(await site.serves(site.url(0), `again-${round}`)),
        ...(await site.serves(site.url(1), `other-${round}`)),
      ];
      sayOutage(
        "room again",
        freedMs,
        again.find(({ end }) => end === "answered"),
        leaseMs,
      );
      await site.expectSettled([...sent, ...again]);
      await site.expectOneChain();
      await site.expectVerified(again.at(-1)?.mark ?? "");
      for (const { process } of site.group.members) expect(process.exitCode).to.equal(null);
    });
  }
});

/** Writes a file until there is no room left. */
async function fill(path: string): Promise<void> {
  const file = await open(path, "w");
  try {
    // Less is written than was asked for, and then nothing.
    for (const bytes = Buffer.alloc(1_048_576, 1); ; ) await file.write(bytes);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
  } finally {
    await file.close();
  }
}

async function run(command: string, args: readonly string[]): Promise<void> {
  const { code, stderr } = await runProgram(command, args);
  if (code !== 0) throw new Error(`${command}: ${stderr}`);
}
