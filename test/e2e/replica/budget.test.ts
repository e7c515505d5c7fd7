import { createHash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { ModelProvider, scripts } from "../../fixture/model-provider.ts";
import { answerOf } from "../../fixture/model-reply.ts";
import { allowEverything } from "../../support/pack.ts";
import { ReplicaGroup } from "../../support/replica-group.ts";
import { eventually } from "../../support/replica-site.ts";
import { roundsOf } from "../../support/rounds.ts";

const rounds = roundsOf(1, 30);
const atOnce = 60;
/** Tokens of a request: as estimated before it, and as the provider counts them. */
const tokens = 100;
const usage = { prompt_tokens: 80, completion_tokens: 20, total_tokens: 100 };
const [messageTokens, responseTokens, bytesPerToken] = [4, 3, 4];
const content = "x".repeat((tokens - messageTokens - responseTokens) * bytesPerToken);
/** Requests that a budget has room for. */
const room = 20;

/** Has a budget of its own, so that no test spends another's. */
interface Tenant {
  readonly name: string;
  readonly key: string;
}

describe("a budget of tokens, on three replicas", () => {
  const tenants: readonly Tenant[] = Array.from({ length: 2 * rounds + 1 }, (_, index) => ({
    name: `tenant-${index}`,
    key: `test-${randomBytes(32).toString("base64url")}`,
  }));
  const unused = [...tenants];
  let provider: ModelProvider;
  let group: ReplicaGroup;

  before(async () => {
    provider = await ModelProvider.start();
    provider.script = async (response, call) => {
      await sleep(50);
      await scripts.says(200, { ...answerOf("chat", { text: "It is sunny." }), usage })(response, call);
    };
    const keys = tenants.map(({ name, key }) => {
      const hash = createHash("sha256").update(key).digest("hex");
      return `  - { id: ${name}, tenant: ${name}, role: operator, key_hash: "sha256:${hash}" }`;
    });
    const budgets = tenants.map(({ name }) => `{ tenant: ${name}, tokens_per_day: ${room * tokens} }`);
    const config = `
listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }
keys:
${keys.join("\n")}
providers:
  - { name: open, type: openai, base_url: "${provider.baseUrl("openai")}", api_key_env: PROVIDER_KEY, models: [chat-model] }
model_gateway: { routes: [{ model: chat-model, providers: [{ name: open }] }] }
usage: { requests_per_minute: 1000000, tokens_per_minute: 1000000000, budgets: [${budgets.join(", ")}] }
sessions: { risk: { kill_at: 0 } }
policy: { packs: [{ path: packs/open }] }
`;
    const env = { PROVIDER_KEY: "test-provider-key" };
    group = await ReplicaGroup.create({ config, files: allowEverything("packs/open"), leaseMs: 3_000, env });
    await Promise.all([0, 1, 2].map((index) => group.start(index)));
    const first = nextTenant();
    await eventually("an owner", async () => (await ask(0, first)) === 200);
  });

  after(async () => {
    await group.stop();
    provider.stop();
  });

  function nextTenant(): Tenant {
    const tenant = unused.shift();
    if (tenant === undefined) throw new Error("expected a tenant that is left");
    return tenant;
  }

  /** Asks the model at a replica. Returns the status, or 0 where no whole answer came. */
  async function ask(index: number, { name, key }: Tenant): Promise<number> {
    try {
      const response = await fetch(`${group.member(index).url}/v1/chat/completions`, {
        method: "POST",
        headers: { "x-api-key": key, "content-type": "application/json", connection: "close" },
        body: JSON.stringify({ model: "chat-model", messages: [{ role: "user", content }], user: name }),
      });
      const text = await response.text();
      if (response.status === 429) expect(text).to.include("insufficient_quota");
      return response.status;
    } catch (error) {
      if (error instanceof TypeError) return 0; // as `fetch` says that the connection broke
      throw error;
    }
  }

  /** How many requests of a tenant reached the provider: its own log is the witness. */
  function reached({ name }: Tenant): number {
    return provider.calls.filter(({ body }) => body.user === name).length;
  }

  for (let round = 1; round <= rounds; round++) {
    it(`is not exceeded when ${atOnce} requests come to all at once (${round}) [S86]`, async () => {
      const tenant = nextTenant();
      const statuses = await Promise.all(Array.from({ length: atOnce }, (_, turn) => ask(turn % 3, tenant)));
      expect(statuses.filter((status) => status === 200)).to.have.length(room);
      expect(statuses.filter((status) => status === 429)).to.have.length(atOnce - room);
      expect(reached(tenant)).to.equal(room);
    });

    it(`is not exceeded when the owner is killed amid the requests (${round}) [S86]`, async () => {
      const tenant = nextTenant();
      const killed = group.owner();
      const next = (killed + 1) % 3;
      let isOver = false;
      const statuses: number[] = [];
      const work = async (agent: number): Promise<void> => {
        for (let turn = agent; !isOver; turn++) statuses.push(await ask(turn % 3, tenant));
      };
      const working = Promise.all([0, 1, 2].map(work));
      let before: number;
      try {
        await eventually("some requests", () => reached(tenant) >= 6);
        await group.member(killed).kill9();
        before = reached(tenant);
        await eventually("the budget to be spent", async () => (await ask(next, tenant)) === 429);
      } finally {
        isOver = true;
        await working;
      }
      expect(reached(tenant)).to.be.within(before + 1, room);
      expect(statuses.filter((status) => status === 200).length).to.be.at.most(room);
      await group.start(killed);
    });
  }
});
