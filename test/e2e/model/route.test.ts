import { expect } from "chai";
import type { ActionRecord } from "../../../core/evidence/record/record.ts";
import { type Script, scripts } from "../../fixture/model-provider.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { askModel } from "./ask.ts";
import { type ModelWorld, type ModelWorldOptions, openModelWorld } from "./world.ts";

const both = "providers: [{ name: open, model: one }, { name: claude, model: two }]";
const quick = "max_retries: 0";

/** Routes by the model that clients ask for. */
const routes: Readonly<Record<string, string>> = {
  falling: `${both}, fallback: true`,
  plain: both,
  named: "providers: [{ name: open, model: one }]",
  claude: "providers: [{ name: claude, model: two }]",
  judged: "providers: [{ name: open, model: one }, { name: claude, model: forbidden }], fallback: true",
  even: "providers: [{ name: open, model: one, weight: 50 }, { name: claude, model: two, weight: 50 }]",
  one: "providers: [{ name: open, model: one, weight: 1000 }, { name: claude, model: two, weight: 1 }]",
  canary: "providers: [{ name: open, model: one }], canary: { name: claude, model: two, percent: 30 }",
};
const rules = `
  - id: open.not-claude
    title: Not there
    decision: block
    severity: low
    risk: 10
    match: { phase: input, protocol: model, target: "claude/forbidden" }
    message: not there
`;

function open(provider: string): Promise<ModelWorld> {
  const all = Object.entries(routes).map(([model, route]) => `{ model: ${model}, ${route} }`);
  return openModelWorld({
    models: Object.keys(routes),
    provider: `${quick}\n    ${provider}`,
    routes: `[${all.join(", ")}]`,
    rules,
  });
}

/** Runs `work` with a gateway of its own, whose providers have these members too. */
async function withOwn(provider: string, work: (world: ModelWorld) => Promise<void>): Promise<void> {
  const own = await open(provider);
  try {
    await work(own);
  } finally {
    await own.stop();
  }
}

/** The models that providers were asked for while `work` ran. */
async function askedDuring({ provider }: ModelWorld, work: () => Promise<unknown>): Promise<readonly string[]> {
  const before = provider.calls.length;
  await work();
  return provider.calls.slice(before).map(({ body }) => String(body.model));
}

/** The models that providers were asked for, by requests of so many sessions. */
function asked(world: ModelWorld, model: string, sessions: number): Promise<readonly string[]> {
  return askedDuring(world, async () => {
    for (let index = 0; index < sessions; index++) await askModel(world, { model, headers: labelled(`${index}`) });
  });
}

function labelled(session: string): Readonly<Record<string, string>> {
  return { "x-gateway-session-id": session };
}

function recordsOf({ gateway, keys }: ModelWorld, session: string): Promise<readonly ActionRecord[]> {
  return new EvidenceReader(gateway.adminUrl, keys.operator).recordsOf((label) => label === session);
}

/** What is said of a start that fails. */
function refusalOf(options: ModelWorldOptions): Promise<string> {
  return openModelWorld(options).then(
    () => "started",
    (error: Error) => error.message,
  );
}

describe("routes", () => {
  let world: ModelWorld;
  let usual: Script;

  before(async () => {
    world = await open("enabled: true\n    breaker: { failures: 1000 }");
    usual = world.provider.script;
  });

  afterEach(() => {
    world.provider.script = usual;
  });

  after(() => world?.stop());

  it("fall back where they say so, each attempt an action of its own [R2.7-4]", async () => {
    world.provider.next(scripts.says(500), scripts.answers({ text: "second" }));
    const models = await askedDuring(world, async () => {
      const told = await askModel(world, { model: "falling", headers: labelled("falls-back") });
      expect(told.status).to.equal(200);
      expect(told.text).to.include("second");
    });
    expect(models).to.deep.equal(["one", "two"]);
    const records = await recordsOf(world, "falls-back");
    expect(records.map(({ kind, effect, action }) => [kind, effect, action.target])).to.deep.equal([
      ["decision", "dispatched", "open/one"],
      ["outcome", "error", "open/one"],
      ["decision", "dispatched", "claude/two"],
      ["outcome", "success", "claude/two"],
    ]);
    expect(new Set(records.map(({ action }) => action.id)).size).to.equal(2);
  });

  it("do not fall back otherwise [R2.7-3, R2.7-4]", async () => {
    world.provider.script = scripts.says(500);
    const models = await askedDuring(world, async () => {
      expect((await askModel(world, { model: "plain" })).status).to.be.at.least(500);
    });
    expect(models).to.deep.equal(["one"]);
  });

  describe("lead to no provider for being enabled: one has to be named [R2.7-2]", () => {
    async function expectNamedAlone(where: ModelWorld): Promise<void> {
      where.provider.next(scripts.says(500));
      expect(await asked(where, "named", 4)).to.deep.equal(["one", "one", "one", "one"]);
      const more = await askedDuring(where, async () => {
        expect((await askModel(where, { model: "messages-model" })).status).to.equal(404);
      });
      expect(more).to.deep.equal([]);
    }

    it("where that is said", () => expectNamedAlone(world));

    it("where nothing is said of it", () => withOwn("", expectNamedAlone));
  });

  it("ask a provider by its name, type, base_url, key and models, and only while it is enabled [R2.7-1]", async () => {
    expect((await askModel(world, { model: "claude", headers: labelled("by-name") })).status).to.equal(200);
    const call = world.provider.calls.at(-1);
    expect([call?.path, call?.body.model, call?.headers["x-api-key"]]).to.deep.equal([
      "/v1/messages",
      "two",
      world.providerKey,
    ]);
    expect((await recordsOf(world, "by-name"))[0]?.action.target).to.equal("claude/two");
    const refusals: readonly (readonly [route: string, provider: string, said: string])[] = [
      ["providers: [{ name: open, model: one }]", "enabled: false", "enabled"],
      ["providers: [{ name: nobody, model: one }]", "enabled: true", "nobody"],
    ];
    for (const [route, provider, said] of refusals) {
      expect(await refusalOf({ provider, routes: `[{ model: shared-model, ${route} }]` }))
        .to.match(/model_gateway\.routes\[0\]\.providers\[0\]\.name/)
        .and.to.contain(said);
    }
    const unnamed = refusalOf({ routes: "[{ model: unlisted, providers: [{ name: open }] }]" });
    expect(await unnamed).to.contain("unlisted");
  });

  it("judge each provider: one that policy blocks is not fallen back to", async () => {
    world.provider.script = scripts.says(500);
    const models = await askedDuring(world, async () => {
      expect((await askModel(world, { model: "judged" })).status).to.equal(403);
    });
    expect(models).to.deep.equal(["one"]);
  });

  it("do not fall back once the client was told anything", () =>
    withOwn("idle_timeout_ms: 200", async (own) => {
      const chunk = { id: "c", object: "chat.completion.chunk", created: 1, model: "one" };
      const event = {
        ...chunk,
        choices: [{ index: 0, delta: { role: "assistant", content: "so " }, finish_reason: null }],
      };
      own.provider.next(scripts.stalls(new Array<string>(200).fill(`data: ${JSON.stringify(event)}\n\n`)));
      const told = await askModel(own, { model: "falling", stream: true });
      expect(told.status).to.equal(200);
      expect(told.text).to.include('"so "').and.include("provider_timeout");
      expect(own.provider.calls.length).to.equal(1);
      expect((await own.records()).at(-1)).to.include({ kind: "outcome", effect: "unknown" });
    }));

  it("leave a provider that keeps failing alone: breaker.failures", async () => {
    world.provider.script = scripts.says(500);
    expect(await asked(world, "plain", 6)).to.have.length(6);
    await withOwn("breaker: { failures: 2, rest_ms: 60000 }", async (own) => {
      own.provider.script = scripts.says(500);
      expect(await asked(own, "plain", 6)).to.have.length(2);
    });
  });

  it("share sessions out: weight, and canary.percent", async () => {
    const counts: Record<string, number> = {};
    for (const name of ["even", "one", "canary", "named"]) {
      const models = await asked(world, name, 40);
      expect(await asked(world, name, 40), "the same sessions go the same way").to.deep.equal(models);
      counts[name] = models.filter((model) => model === "two").length;
    }
    expect(counts.one).to.be.below(3);
    expect(counts.named).to.equal(0);
    expect(counts.even).to.be.within(8, 32);
    expect(counts.canary).to.be.within(3, 24);
  });

  it("try again as often as max_retries says", async () => {
    world.provider.script = scripts.says(503);
    expect(await asked(world, "plain", 1)).to.have.length(1);
    const own = await openModelWorld({
      provider: "max_retries: 1",
      models: ["plain"],
      routes: `[{ model: plain, ${both} }]`,
    });
    try {
      own.provider.script = scripts.says(503);
      expect(await asked(own, "plain", 1)).to.have.length(2);
    } finally {
      await own.stop();
    }
  });
});
