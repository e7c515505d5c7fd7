import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import type { EvidenceJob } from "../../core/evidence/evidence-jobs.ts";
import type { SessionPage } from "../../core/session/session-directory.ts";
import { HeldSite, overHttp } from "../support/held-site.ts";
import { MoodyUpstream } from "../support/moody-upstream.ts";
import { compilePreload } from "../support/preload.ts";
import { until } from "../support/webhook-receiver.ts";
import { type HeaderList, send } from "../support/wire.ts";

const hourS = 3_600;
const dayS = 24 * hourS;
const riskyRule = `rules:
  - id: open.risky
    title: Calls add to the risk
    decision: allow
    severity: info
    risk: 0
    session_risk: 60
    taints: [seen]
    match: { phase: input, tool: plain }
    message: risky
`;

/** A real gateway whose wall clock is set while the hours pass after each of which it looks for what is no longer kept. */
describe("hourly sweeps under a wall clock that is set", () => {
  let folder: string;
  let upstream: MoodyUpstream;
  let site: HeldSite;
  let clock: number;
  let jumps = 0;
  let passedS = 0;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "clock-sweep-"));
    upstream = await MoodyUpstream.start();
    upstream.swap([{ name: "plain", description: "Answers.", inputSchema: { type: "object" } }]);
    clock = openSync(join(folder, "clock"), "w");
    shiftClocks(0);
    site = new HeldSite({
      upstreams: [overHttp("moody", upstream.url)],
      folder: join(folder, "gateway"),
      rules: riskyRule,
      env: { LD_PRELOAD: await compilePreload("clock-shift", folder), CLOCK_SHIFT: join(folder, "clock") },
      sessions: "idle_retention_days: 1",
      more: "log: { level: info }\nevidence: { retention_days: 1 }",
    });
    await site.start();
    await site.call("plain", { risk: 1 });
  });

  after(async () => {
    await site.kill9().catch(() => undefined);
    upstream.stop();
    closeSync(clock);
    rmSync(folder, { recursive: true });
  });

  it("forget no taint and prune no record because it is years ahead, or back [S91]", async () => {
    for (const wallS of [400 * dayS, -400 * dayS, 0]) {
      await setWallClock(wallS);
      // The second sweep begins when the first has ended; a third clock check comes after it.
      for (const turn of [1, 2]) {
        passedS += hourS + 1;
        await setWallClock(wallS + 10 * turn);
      }
      expect(await taints()).to.deep.equal([["seen"]]);
      expect(await prunes()).to.deep.equal([]);
    }
  });

  it("forget and prune what is a day old by the time that passed", async () => {
    passedS += 2 * dayS;
    shiftClocks(0);
    await until(async () => (await taints()).length === 0, "the session to be forgotten");
    await until(async () => (await prunes()).includes("complete"), "the records to be pruned");
  });

  /** In place: the gateway has mapped the file. */
  function shiftClocks(wallS: number): void {
    writeSync(clock, Buffer.from(new BigInt64Array([BigInt(wallS), BigInt(passedS)]).buffer), 0, 16, 0);
  }

  /** Resolves when the gateway has logged it: its check of the clock comes with, or after, all that is due by then. */
  async function setWallClock(wallS: number): Promise<void> {
    shiftClocks(wallS);
    jumps++;
    const logged = (): number => site.gateway.stderr().split('"clock_jumped"').length - 1;
    await until(() => logged() === jumps, "the jump in the log");
  }

  async function taints(): Promise<readonly (readonly string[])[]> {
    const { items } = await admin<SessionPage>("/sessions");
    return items.map((item) => (item.state === "damaged" ? [item.state] : item.taints));
  }

  /** The states of the prunes that were begun. */
  async function prunes(): Promise<readonly string[]> {
    const { items } = await admin<{ readonly items: readonly EvidenceJob[] }>("/evidence/jobs");
    return items.map(({ state }) => state);
  }

  /** On a connection of its own: kept ones end as time passes. */
  async function admin<T>(path: string): Promise<T> {
    const headers: HeaderList = [["x-api-key", site.key("rita")]];
    const { status, body } = await send(site.gateway.adminUrl, { target: `/admin/v1${path}`, headers });
    if (status !== 200) throw new Error(`expected 200, got ${status}: ${body}`);
    return JSON.parse(body) as T;
  }
});
