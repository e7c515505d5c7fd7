import { mock } from "node:test";
import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import type { Principal } from "../../../core/action/principal.ts";
import { FairShare, type ShareLimit } from "../../../core/http/fair-share.ts";

const principal = (id: string, tenant: string): Principal => ({ id, tenant, role: "viewer", keyId: id });
const [ann, bob, eve] = [principal("ann", "acme"), principal("bob", "acme"), principal("eve", "other")];

describe("FairShare", () => {
  let now: number;
  let load: number;
  let refused: ShareLimit[];
  beforeEach(() => {
    [now, load, refused] = [1_000, 100, []];
  });

  function shareOf(limits: Partial<ConstructorParameters<typeof FairShare>[0]> = {}): FairShare {
    return new FairShare({
      keyCallsPerMinute: 60,
      tenantCallsPerMinute: 90,
      keyCpuPercent: 100,
      tenantCpuPercent: 100,
      busyPercent: 75,
      loadPercent: () => load,
      mainThread: { measure: () => ({ percent: load, runningShare: 1 }) },
      elapsedMs: () => now,
      onRefused: (limit) => refused.push(limit),
      ...limits,
    });
  }

  /** Lets a request use the main thread for so long, on the clock of the test. */
  async function use(share: FairShare, who: Principal, ms: number): Promise<void> {
    share.mainThread.resume(who);
    now += ms;
    await new Promise(setImmediate);
  }

  /** The message and data of a refusal; undefined where the request is admitted. */
  function refusalOf(admit: () => void): object | undefined {
    try {
      admit();
      return undefined;
    } catch (cause) {
      const { code, message, data } = GatewayError.from(cause);
      return { code, message, ...data };
    }
  }

  function callsOf(share: FairShare, who: Principal, count: number): number {
    let admitted = 0;
    for (let turn = 0; turn < count; turn++) if (refusalOf(() => share.admit(who, "call")) === undefined) admitted++;
    return admitted;
  }

  describe("calls", () => {
    it("admits a minute's worth of a key at once, then one for each that is refilled [S77]", () => {
      const share = shareOf();
      expect(callsOf(share, ann, 70)).to.equal(60);
      expect(refusalOf(() => share.admit(ann, "call"))).to.deep.equal({
        code: "RATE_LIMITED",
        message: "too many requests: expected at most 60 calls a minute of this key, got more; try again in 1 s",
        reason: "key_calls",
        retry_after_s: 1,
        limit: 60,
      });
      now += 1_000;
      expect(callsOf(share, ann, 2)).to.equal(1);
    });

    it("admits what all keys of a tenant have together, whatever another tenant does", () => {
      const share = shareOf();
      expect([callsOf(share, ann, 60), callsOf(share, bob, 60), callsOf(share, eve, 60)]).to.deep.equal([60, 30, 60]);
      expect(refusalOf(() => share.admit(bob, "call"))).to.include({
        reason: "tenant_calls",
        message: "too many requests: expected at most 90 calls a minute of this tenant, got more; try again in 1 s",
      });
    });

    it("takes nothing from who is refused", () => {
      const share = shareOf();
      callsOf(share, ann, 10_000);
      now += 1_000;
      expect(callsOf(share, ann, 2)).to.equal(1);
      expect(callsOf(share, bob, 60)).to.equal(30);
    });

    it("does not count what is no call", () => {
      const share = shareOf({ keyCallsPerMinute: 1 });
      for (let turn = 0; turn < 10; turn++) share.admit(ann);
      expect(callsOf(share, ann, 2)).to.equal(1);
    });
  });

  describe("processor time", () => {
    const quarter = { keyCpuPercent: 25, tenantCpuPercent: 50 };

    it("refuses a key that has overdrawn two seconds' worth, until that is paid off", async () => {
      const share = shareOf(quarter);
      await use(share, ann, 499);
      expect(refusalOf(() => share.admit(ann))).to.equal(undefined);
      await use(share, ann, 990);
      // 1,489 ms were used of 500 ms, and 247.5 ms were refilled meanwhile.
      expect(refusalOf(() => share.admit(ann))).to.deep.equal({
        code: "RATE_LIMITED",
        message:
          "too many requests: expected at most 25 % of the gateway's processor time of this key, got more; try again in 3 s",
        reason: "key_cpu",
        retry_after_s: 3,
        limit: 25,
      });
      expect(refusalOf(() => share.admit(ann, "call"))).to.include({ reason: "key_cpu" });
      now += 3_000;
      expect(refusalOf(() => share.admit(ann))).to.equal(undefined);
      expect(refused).to.deep.equal(["key_cpu", "key_cpu"]);
    });

    it("charges what other threads did for a principal [S77]", () => {
      const share = shareOf(quarter);
      share.spend({ id: "ann", tenant: "acme" }, 499);
      expect(refusalOf(() => share.admit(ann))).to.equal(undefined);
      share.spend({ id: "ann", tenant: "acme" }, 251);
      expect(refusalOf(() => share.admit(ann))).to.include({ reason: "key_cpu", retry_after_s: 2 });
      expect(refusalOf(() => share.admit(bob))).to.equal(undefined);
    });

    it("charges what is sealed and written by its bytes [S77]", () => {
      const share = shareOf(quarter);
      share.spendStored({ id: "ann", tenant: "acme" }, 4_000_000);
      expect(refusalOf(() => share.admit(ann))).to.equal(undefined);
      share.spendStored({ id: "ann", tenant: "acme" }, 8_000_000);
      expect(refusalOf(() => share.admit(ann))).to.include({ reason: "key_cpu", retry_after_s: 1 });
      expect(refusalOf(() => share.admit(bob))).to.equal(undefined);
    });

    it("refuses all keys of a tenant that has overdrawn, and those of no other", async () => {
      const share = shareOf({ ...quarter, keyCpuPercent: 99 });
      await use(share, ann, 1_900);
      await use(share, ann, 1_900);
      expect(refusalOf(() => share.admit(bob))).to.include({ reason: "tenant_cpu", limit: 50 });
      expect(refusalOf(() => share.admit(eve))).to.equal(undefined);
    });

    it("refuses nobody while the loop has time left, and remembers what was used", async () => {
      const share = shareOf(quarter);
      load = 74;
      await use(share, ann, 2_000);
      expect(refusalOf(() => share.admit(ann))).to.equal(undefined);
      await new Promise(setImmediate);
      load = 75;
      expect(refusalOf(() => share.admit(ann))).to.include({ reason: "key_cpu" });
    });

    it("charges the time with a processor only: what other processes of the machine take is nobody's", async () => {
      const share = shareOf({ ...quarter, mainThread: { measure: () => ({ percent: 0, runningShare: 0.25 }) } });
      await use(share, ann, 1_900); // 475 ms of 500
      expect(refusalOf(() => share.admit(ann))).to.equal(undefined);
    });

    it("charges what follows a pause to who paused, and nothing meanwhile [S77]", async () => {
      const share = shareOf(quarter);
      const paused = share.pause(ann).then(() => {
        now += 499;
      });
      now += 10_000;
      await paused;
      await new Promise(setImmediate);
      expect(refusalOf(() => share.admit(ann))).to.equal(undefined);
      await use(share, ann, 500);
      expect(refusalOf(() => share.admit(ann))).to.include({ reason: "key_cpu" });
    });

    it("does not limit a share of 100 %", async () => {
      const share = shareOf();
      await use(share, ann, 1_000_000);
      expect(refusalOf(() => share.admit(ann))).to.equal(undefined);
    });
  });

  describe("large bodies", () => {
    const megabyte = 2 ** 20;
    const outcome = (admitted: Promise<void>): Promise<object | undefined> =>
      admitted.then(
        () => undefined,
        (cause: unknown) => GatewayError.from(cause).data,
      );

    it("admits each in its turn, and refuses a key whose bodies would be too many [S77]", async () => {
      const share = shareOf();
      const anns = Array.from({ length: 40 }, () => outcome(share.admitLarge(ann, megabyte)));
      const bobs = outcome(share.admitLarge(bob, megabyte));
      const refusal = { reason: "key_bytes", retry_after_s: 1, limit: 32 * megabyte };
      const expected = Array.from({ length: 40 }, (_, n) => (n < 32 ? undefined : refusal));
      expect(await Promise.all(anns)).to.deep.equal(expected);
      expect(await bobs).to.equal(undefined);
      expect(await outcome(share.admitLarge(ann, 32 * megabyte))).to.equal(undefined);
      expect(refused).to.have.length(8);
    });

    it("leave others the thread for as long as each took, where small requests have come lately [S77]", async () => {
      mock.timers.enable({ apis: ["setTimeout"] });
      try {
        const share = shareOf();
        const served: string[] = [];
        const enter = (name: string): Promise<unknown> =>
          share.admitLarge(ann, megabyte).then(() => {
            now += 100;
            served.push(name);
          });
        share.admitSmall(eve);
        void enter("1");
        void enter("2");
        for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
        expect(served).to.deep.equal(["1"]);
        mock.timers.tick(100);
        await new Promise(setImmediate);
        expect(served).to.deep.equal(["1", "2"]);
        now += 250;
        void enter("3");
        void enter("4");
        for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
        expect(served).to.deep.equal(["1", "2", "3", "4"]);
      } finally {
        mock.timers.reset();
      }
    });

    it("refuses those that wait once their key has overdrawn [S77]", async () => {
      const share = shareOf({ keyCpuPercent: 25 });
      const first = share.admitLarge(ann, megabyte).then(() => {
        now += 600;
      });
      const second = outcome(share.admitLarge(ann, megabyte));
      const others = outcome(share.admitLarge(bob, megabyte));
      await first;
      expect(await second).to.include({ reason: "key_cpu" });
      expect(await others).to.equal(undefined);
    });

    it("from 256 KiB on are refused once their key has overdrawn, whatever the load; smaller ones while it is high [S77]", async () => {
      const share = shareOf({ keyCpuPercent: 25 });
      load = 0;
      share.spend(ann, 501);
      const refusals: unknown[] = [];
      for (const bytes of [262_143, 262_144]) refusals.push(await outcome(share.admitLarge(ann, bytes)));
      expect(refusals).to.deep.equal([undefined, { reason: "key_cpu", retry_after_s: 1, limit: 25 }]);
      expect(refusalOf(() => share.admitBytes(ann, 262_144))).to.include({ reason: "key_cpu" });
      expect(refusalOf(() => share.admitBytes(bob, 262_144))).to.equal(undefined);
      load = 75;
      expect(await outcome(share.admitLarge(ann, 262_143))).to.include({ reason: "key_cpu" });
      now += 10;
      expect(refusalOf(() => share.admitBytes(ann, 262_144))).to.equal(undefined);
    });
  });
});
