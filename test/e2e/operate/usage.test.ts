import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import type { Principal } from "../../../core/action/principal.ts";
import { openStore } from "../../../core/store/open.ts";
import { UsageMeter } from "../../../core/usage/meter.ts";
import type { UsagePage } from "../../../core/usage/usage-report.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { siteConfig, siteFiles, siteKey } from "../../support/site.ts";
import { send, type WireResponse } from "../../support/wire.ts";

const foreignKey = `{ id: robot, tenant: globex, role: viewer, key_hash: "sha256:${"0".repeat(64)}" }`;
const own: Principal = { id: "principal-v1-own", tenant: "acme", role: "viewer", keyId: "ci" };
const foreign: Principal = { id: "principal-v1-foreign", tenant: "globex", role: "viewer", keyId: "robot" };
const config = siteConfig({ role: "viewer" }).replace("keys: [", `keys: [${foreignKey}, `);
const lately = { input: 30, output: 12 };

describe("GET /admin/v1/usage", () => {
  let folder: string;
  let gateway: RunningGateway;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "usage-"));
    await start();
    await gateway.stop();
    await book(Date.now() - 40 * 86_400_000);
    await book(Date.now());
    await start();
  });
  after(async () => {
    await gateway.stop();
    await rm(folder, { recursive: true });
  });

  async function start(): Promise<void> {
    gateway = await startGateway({ alone: true, folder, config, files: siteFiles() });
  }

  /** Leaves what an earlier gateway would have left. */
  async function book(at: number): Promise<void> {
    const store = await openStore({ dir: join(folder, "data"), enabled: true });
    const meter = await UsageMeter.open({
      config: { requestsPerMinute: 100, tokensPerMinute: 100_000, budgets: [] },
      store,
      clock: () => at,
      elapsedMs: () => performance.now(),
      observer: { tokensUsed: () => undefined, usageRefused: () => undefined },
      onWarning: (message) => expect.fail(message),
    });
    for (const principal of [own, foreign]) {
      for (const model of ["large", "small", "vendor/other"]) {
        const usage = { inputTokens: 10, outputTokens: 4, cachedInputTokens: 2 };
        meter.settle(meter.admit(principal, 10), { provider: "openai", model, usage });
      }
    }
    await meter.close();
    await store.close();
  }

  function get(query: string = ""): Promise<WireResponse> {
    return send(gateway.adminUrl, { target: `/admin/v1/usage${query}`, headers: [["x-api-key", siteKey]] });
  }

  async function page(query?: string): Promise<UsagePage> {
    const { status, body } = await get(query);
    expect(status, body).to.equal(200);
    return JSON.parse(body) as UsagePage;
  }

  it("tells what the caller's tenant used in the last 31 days, and nothing of another's [R4.2-3]", async () => {
    const { totals, items, next } = await page();
    expect(totals).to.include({ requests: 3, input_tokens: lately.input, output_tokens: lately.output });
    expect(totals.cached_input_tokens).to.equal(6);
    expect(items.map(({ model }) => model)).to.deep.equal(["large", "small", "vendor/other"]);
    const told = { principal: own.id, key_id: "ci", provider: "openai", requests: 1, input_tokens: 10 };
    for (const item of items) expect(item).to.include({ ...told, day: new Date().toISOString().slice(0, 10) });
    expect(next).to.equal(null);
  });

  it("tells earlier days where it is asked for them", async () => {
    const day = new Date(Date.now() - 40 * 86_400_000).toISOString().slice(0, 10);
    const { from, to, totals, items } = await page(`?from=${day}&to=${day}&by=provider`);
    expect([from, to, totals.requests]).to.deep.equal([day, day, 3]);
    expect(items).to.deep.equal([{ provider: "openai", ...totals }]);
  });

  it("pages", async () => {
    const models: (string | undefined)[] = [];
    for (let query: string | null = ""; query !== null; ) {
      const { items, next, totals }: UsagePage = await page(`?limit=1${query}`);
      expect(totals.requests).to.equal(3);
      models.push(...items.map(({ model }) => model));
      query = next === null ? null : `&cursor=${encodeURIComponent(next)}`;
    }
    expect(models).to.deep.equal(["large", "small", "vendor/other"]);
  });

  const wrong: Readonly<Record<string, string>> = {
    "an unknown parameter": "?form=2026-11-22",
    "a day that is none": "?from=2026-02-30",
    "two days": "?to=2026-11-22&to=2026-11-23",
    "days in the wrong order": "?from=2026-11-23&to=2026-11-22",
    "more than 31 days": "?from=2026-01-01&to=2026-02-01",
    "an unknown dimension": "?by=day,tenant",
    "a dimension twice": "?by=day,day",
    "no dimension": "?by=",
  };
  for (const [name, query] of Object.entries(wrong)) {
    it(`refuses ${name}`, async () => {
      const { status, body } = await get(query);
      expect([status, JSON.parse(body).code]).to.deep.equal([400, "INVALID_PARAMS"]);
    });
  }
});
