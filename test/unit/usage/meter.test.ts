import { expect } from "chai";
import { MemoryLevel } from "memory-level";
import type { GatewayError } from "../../../core/action/error.ts";
import type { Principal } from "../../../core/action/principal.ts";
import type { BudgetConfig, UsageConfig } from "../../../core/config/gateway-config.ts";
import { type Reservation, UsageMeter } from "../../../core/usage/meter.ts";
import { type UsagePage, usageDimensions } from "../../../core/usage/usage-report.ts";

const noon = Date.parse("2026-11-22T12:00:00Z");
const dayMs = 86_400_000;
const agent: Principal = { id: "principal-v1-a", tenant: "acme", role: "viewer", keyId: "agent" };
const other: Principal = { id: "principal-v1-b", tenant: "acme", role: "viewer", keyId: "other" };
const stranger: Principal = { id: "principal-v1-c", tenant: "globex", role: "viewer", keyId: "robot" };
const by = usageDimensions;

function budget(limits: Partial<BudgetConfig>): BudgetConfig {
  return { tenant: "acme", key: null, tokensPerDay: null, tokensPerMonth: null, ...limits };
}

describe("UsageMeter", () => {
  let store: MemoryLevel<string, string>;
  let now: number;
  let meter: UsageMeter;
  let refused: string[];
  let tokens: Record<"input" | "output", number>;

  beforeEach(async () => {
    store = new MemoryLevel();
    now = noon;
    refused = [];
    tokens = { input: 0, output: 0 };
    meter = await open();
  });
  afterEach(() => meter.close());

  function open(config: Partial<UsageConfig> = {}): Promise<UsageMeter> {
    return UsageMeter.open({
      config: { requestsPerMinute: 1_000, tokensPerMinute: 1_000_000, budgets: [], ...config },
      store,
      clock: () => now,
      elapsedMs: () => now,
      observer: {
        tokensUsed: (direction, count) => {
          tokens[direction] += count;
        },
        usageRefused: (reason) => refused.push(reason),
      },
      onWarning: (message) => expect.fail(message),
    });
  }

  function use(principal: Principal, input: number, output: number, model = "m"): void {
    const usage = { inputTokens: input, outputTokens: output };
    meter.settle(meter.admit(principal, input), { provider: "p", model, usage });
  }

  function refusalOf(principal: Principal, asked: number): GatewayError | null {
    try {
      meter.release(meter.admit(principal, asked));
      return null;
    } catch (error) {
      return error as GatewayError;
    }
  }

  it("counts what was settled by day, principal, provider and model", async () => {
    use(agent, 10, 5);
    use(agent, 1, 1);
    use(other, 100, 50, "vendor/n");
    use(stranger, 7, 7);
    now += dayMs;
    use(agent, 2, 2);
    const page = await meter.page("acme", { from: "2026-11-01", to: "2026-11-30", by, limit: 10 });
    const row = (
      day: string,
      principal: Principal,
      model: string,
      requests: number,
      input: number,
      output: number,
    ) => ({
      day,
      principal: principal.id,
      key_id: principal.keyId,
      provider: "p",
      model,
      requests,
      input_tokens: input,
      output_tokens: output,
      cached_input_tokens: 0,
    });
    expect(page).to.deep.equal({
      from: "2026-11-01",
      to: "2026-11-30",
      totals: { requests: 4, input_tokens: 113, output_tokens: 58, cached_input_tokens: 0 },
      items: [
        row("2026-11-22", agent, "m", 2, 11, 6),
        row("2026-11-22", other, "vendor/n", 1, 100, 50),
        row("2026-11-23", agent, "m", 1, 2, 2),
      ],
      next: null,
    });
    expect(tokens).to.deep.equal({ input: 120, output: 65 });
  });

  it("adds up by what is asked for, page by page, each with the totals of all", async () => {
    for (const model of ["a", "b", "c"]) use(agent, 1, 0, model);
    now += dayMs;
    for (const model of ["b", "c"]) use(other, 1, 0, model);
    const query = { from: "2026-11-01", to: "2026-11-30", by: ["model"], limit: 2 } as const;
    const first = await meter.page("acme", query);
    const told = (page: UsagePage): unknown => page.items.map(({ model, requests }) => `${model} ${requests}`);
    expect(told(first)).to.deep.equal(["a 1", "b 2"]);
    expect(first.items[0]).to.not.have.any.keys("day", "principal", "key_id", "provider");
    const second = await meter.page("acme", { ...query, cursor: first.next as string });
    expect(told(second)).to.deep.equal(["c 2"]);
    expect([second.next, second.totals.requests]).to.deep.equal([null, 5]);
  });

  it("gives back what a request did not take, and takes what it took beyond", () => {
    const left = (): number => Number(/"tokens";r=(\d+)/.exec(meter.headers(agent).ratelimit ?? "")?.[1]);
    const reservation = meter.admit(agent, 1_000);
    expect(left()).to.equal(999_000);
    meter.settle(reservation, { provider: "p", model: "m", usage: { inputTokens: 100, outputTokens: 50 } });
    expect(left()).to.equal(999_850);
    meter.settle(meter.admit(agent, 0), { provider: "p", model: "m", usage: { inputTokens: 0, outputTokens: 850 } });
    expect(left()).to.equal(999_000);
    meter.release(meter.admit(agent, 5_000));
    expect(left()).to.equal(999_000);
  });

  it("counts a reservation once, whatever ends it again", async () => {
    const reservation = meter.admit(agent, 10);
    const served = { provider: "p", model: "m", usage: { inputTokens: 10, outputTokens: 0 } };
    for (let time = 0; time < 3; time++) meter.settle(reservation, served);
    meter.release(reservation);
    const { totals } = await meter.page("acme", { from: "2026-11-22", to: "2026-11-22", by, limit: 1 });
    expect(totals.requests).to.equal(1);
    expect(meter.headers(agent).ratelimit).to.include("r=999990");
  });

  it("believes no more than a request can take, and takes nothing that is no count", async () => {
    use(agent, 1, 2 ** 53);
    const served = { provider: "p", model: "m", usage: { inputTokens: Number.NaN, outputTokens: 0 } };
    const reservation = meter.admit(other, 1);
    expect(() => meter.settle(reservation, served)).to.throw(TypeError);
    for (const wrong of [-1, Number.NaN]) expect(() => meter.admit(other, wrong)).to.throw(TypeError);
    const { totals } = await meter.page("acme", { from: "2026-11-22", to: "2026-11-22", by, limit: 1 });
    expect(totals).to.include({ requests: 1, input_tokens: 1, output_tokens: 10_000_000 });
  });

  describe("when 100 requests come at once", () => {
    it("lets in as many as the tokens of a minute have room for", async () => {
      await meter.close();
      meter = await open({ tokensPerMinute: 1_000 });
      const admitted = await Promise.all(
        Array.from({ length: 100 }, async () => {
          await Promise.resolve();
          return refusalOf2(agent, 100);
        }),
      );
      expect(admitted.filter((reservation) => reservation !== null)).to.have.length(10);
      expect(refused.filter((reason) => reason === "tokens")).to.have.length(90);
    });

    it("lets in as many as a budget has room for, and more once some took less", async () => {
      await meter.close();
      meter = await open({ budgets: [budget({ tokensPerDay: 1_050 })] });
      const ask = async (): Promise<Reservation | null> => {
        await Promise.resolve();
        return refusalOf2(agent, 100);
      };
      const admitted = (await Promise.all(Array.from({ length: 100 }, ask))).filter((each) => each !== null);
      expect(admitted).to.have.length(10);
      const served = { provider: "p", model: "m", usage: { inputTokens: 20, outputTokens: 30 } };
      for (const reservation of admitted) meter.settle(reservation, served);
      const further = (await Promise.all(Array.from({ length: 100 }, ask))).filter((each) => each !== null);
      expect(further).to.have.length(5);
      expect(refused).to.have.length(185);
      expect(new Set(refused)).to.deep.equal(new Set(["budget"]));
    });

    function refusalOf2(principal: Principal, asked: number): Reservation | null {
      try {
        return meter.admit(principal, asked);
      } catch {
        return null;
      }
    }
  });

  describe("a budget", () => {
    it("says what is left of it, and counts its tenant alone", async () => {
      await meter.close();
      meter = await open({ budgets: [budget({ tokensPerDay: 100 })] });
      use(agent, 50, 20);
      const refusal = refusalOf(other, 31);
      expect(refusal?.code).to.equal("BUDGET_EXHAUSTED");
      const told = { reason: "budget", unit: "day", limit: 100, remaining: 30, reset_s: 43_200 };
      expect(refusal?.data).to.deep.equal(told);
      expect(refusalOf(other, 30)).to.equal(null);
      expect(refusalOf(stranger, 1_000)).to.equal(null);
    });

    it("is listed to its tenant alone, with what is spent of it and held, and when it begins anew", async () => {
      await meter.close();
      meter = await open({
        budgets: [budget({ tokensPerDay: 100, tokensPerMonth: 1_000 }), budget({ key: "agent", tokensPerDay: 50 })],
      });
      use(agent, 10, 20);
      const held = meter.admit(other, 5);
      const [nextDay, nextMonth] = ["2026-11-23T00:00:00.000Z", "2026-12-01T00:00:00.000Z"];
      expect(meter.budgets("acme")).to.deep.equal([
        { key: null, unit: "day", limit: 100, spent: 35, resets_at: nextDay },
        { key: null, unit: "month", limit: 1_000, spent: 35, resets_at: nextMonth },
        { key: "agent", unit: "day", limit: 50, spent: 30, resets_at: nextDay },
      ]);
      expect(meter.budgets("globex")).to.deep.equal([]);
      meter.release(held);
      now += dayMs;
      expect(meter.budgets("acme").map(({ spent }) => spent)).to.deep.equal([0, 30, 0]);
    });

    it("of a key counts that key alone, and both it and its tenant's must have room", async () => {
      await meter.close();
      const budgets = [budget({ key: "agent", tokensPerDay: 50 }), budget({ tokensPerDay: 80 })];
      meter = await open({ budgets });
      expect(refusalOf(agent, 51)?.data).to.include({ limit: 50 });
      use(other, 40, 0);
      expect(refusalOf(agent, 41)?.data).to.include({ limit: 80 });
      expect(refusalOf(agent, 40)).to.equal(null);
    });

    it("lets nothing in once it is spent, however small", async () => {
      await meter.close();
      meter = await open({ budgets: [budget({ tokensPerDay: 100 })] });
      use(agent, 10, 90);
      expect(refusalOf(agent, 0)?.code).to.equal("BUDGET_EXHAUSTED");
    });

    it("counts after a crash what was sent and not answered, as estimated, and what was answered, as used", async () => {
      await meter.close();
      const budgets = [budget({ tokensPerDay: 100 })];
      const crashed = await open({ budgets });
      const server = { provider: "p", model: "m" };
      const [sent, answered, failed, unsent] = [30, 20, 10, 5].map((asked) => crashed.admit(agent, asked));
      for (const reservation of [sent, answered, failed] as Reservation[]) await crashed.book(reservation, server);
      // The first provider failed, and another one served.
      await crashed.book(answered as Reservation, { provider: "q", model: "m" });
      await crashed.settle(answered as Reservation, {
        provider: "q",
        model: "m",
        usage: { inputTokens: 4, outputTokens: 3 },
      });
      crashed.release(failed as Reservation);
      crashed.release(unsent as Reservation);
      const next = crashed.admit(agent, 3);
      await crashed.book(next, server);
      meter = await open({ budgets });
      expect(refusalOf(agent, 61)?.data).to.include({ remaining: 100 - 30 - 7 - 3 });
      expect(refusalOf(agent, 60)).to.equal(null);
      await crashed.close();
    });

    it("lets nothing be sent that it cannot write", async () => {
      await meter.close();
      const bounded = await open({ budgets: [budget({ tokensPerDay: 100 })] });
      const [mine, theirs] = [bounded.admit(agent, 10), bounded.admit(stranger, 10)];
      await store.close();
      const code = await bounded.book(mine, { provider: "p", model: "m" }).catch((error: GatewayError) => error.code);
      expect(code).to.equal("EVIDENCE_UNAVAILABLE");
      // No budget is theirs.
      await bounded.book(theirs, { provider: "p", model: "m" });
      await store.open();
      await bounded.close();
      meter = await open();
    });

    it("begins anew with its day or its month, and never by setting the clock back", async () => {
      await meter.close();
      const budgets = [budget({ tokensPerDay: 100, tokensPerMonth: 150 })];
      meter = await open({ budgets });
      use(agent, 100, 0);
      expect(refusalOf(agent, 1)?.data).to.include({ unit: "day" });
      now += dayMs;
      use(agent, 50, 0);
      expect(refusalOf(agent, 1)?.data).to.include({ unit: "month", reset_s: 8 * 86_400 - 43_200 });
      now -= dayMs;
      expect(refusalOf(agent, 1)?.data).to.include({ unit: "month" });
      now = Date.parse("2026-12-01T00:00:00Z");
      expect(refusalOf(agent, 100)).to.equal(null);
    });

    it("counts a request in the period that it ends in", async () => {
      await meter.close();
      meter = await open({ budgets: [budget({ tokensPerDay: 100 })] });
      const reservation = meter.admit(agent, 90);
      now += dayMs;
      expect(refusalOf(agent, 100)).to.equal(null);
      meter.settle(reservation, { provider: "p", model: "m", usage: { inputTokens: 60, outputTokens: 0 } });
      expect(refusalOf(agent, 41)?.data).to.include({ remaining: 40 });
    });

    it("knows after a restart what was spent, even before it was configured", async () => {
      use(agent, 60, 0);
      use(other, 15, 0);
      now += dayMs;
      use(agent, 10, 0);
      await meter.close();
      const budgets = [budget({ tokensPerDay: 50, tokensPerMonth: 100 }), budget({ key: "agent", tokensPerMonth: 75 })];
      meter = await open({ budgets });
      expect(refusalOf(agent, 6)?.data).to.include({ limit: 75, remaining: 5 });
      expect(refusalOf(other, 16)?.data).to.include({ limit: 100, remaining: 15 });
      expect(refusalOf(other, 15)).to.equal(null);
      expect(refused).to.deep.equal(["budget", "budget"]);
    });
  });
});
