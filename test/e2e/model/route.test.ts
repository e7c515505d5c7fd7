import { expect } from "chai";
import { scripts } from "../../fixture/model-provider.ts";
import { askModel } from "./ask.ts";
import { type ModelWorld, type ModelWorldOptions, openModelWorld } from "./world.ts";

const both = "providers: [{ name: open, model: one }, { name: claude, model: two }]";
const quick = "max_retries: 0";

describe("routes", () => {
  let world: ModelWorld | undefined;
  afterEach(async () => {
    await world?.stop();
    world = undefined;
  });

  async function open(route: string, options: ModelWorldOptions = {}): Promise<ModelWorld> {
    world = await openModelWorld({ provider: quick, ...options, routes: `[{ model: shared-model, ${route} }]` });
    return world;
  }
  /** The models that providers were asked for, by requests of so many sessions. */
  async function asked({ provider, ...rest }: ModelWorld, sessions: number): Promise<readonly string[]> {
    const before = provider.calls.length;
    for (let index = 0; index < sessions; index++) {
      const headers = { "x-gateway-session-id": `session-${index}` };
      await askModel({ provider, ...rest }, { model: "shared-model", headers });
    }
    return provider.calls.slice(before).map(({ body }) => String(body.model));
  }

  it("fall back where they say so, each attempt an action of its own [R2.7-4]", async () => {
    const opened = await open(`${both}, fallback: true`);
    opened.provider.next(scripts.says(500), scripts.answers({ text: "second" }));
    const told = await askModel(opened, { model: "shared-model" });
    expect(told.status).to.equal(200);
    expect(told.text).to.include("second");
    expect(opened.provider.calls.map(({ body }) => body.model)).to.deep.equal(["one", "two"]);
    const records = await opened.records();
    expect(records.map(({ kind, effect, action }) => [kind, effect, action.target])).to.deep.equal([
      ["decision", "dispatched", "open/one"],
      ["outcome", "error", "open/one"],
      ["decision", "dispatched", "claude/two"],
      ["outcome", "success", "claude/two"],
    ]);
    expect(new Set(records.map(({ action }) => action.id)).size).to.equal(2);
  });

  it("do not fall back otherwise [R2.7-3, R2.7-4]", async () => {
    const opened = await open(both);
    opened.provider.script = scripts.says(500);
    expect((await askModel(opened, { model: "shared-model" })).status).to.be.at.least(500);
    expect(opened.provider.calls.map(({ body }) => body.model)).to.deep.equal(["one"]);
  });

  it("lead to no provider for being enabled: one has to be named [R2.7-2]", async () => {
    for (const more of ["enabled: true", ""]) {
      const opened = await open("providers: [{ name: open, model: one }]", { provider: `${quick}\n    ${more}` });
      opened.provider.next(scripts.says(500));
      expect(await asked(opened, 4)).to.deep.equal(["one", "one", "one", "one"]);
      expect((await askModel(opened, { model: "messages-model" })).status).to.equal(404);
      expect(opened.provider.calls).to.have.length(4);
      await opened.stop();
    }
    world = undefined;
  });

  it("ask a provider by its name, type, base_url, key and models, and only while it is enabled [R2.7-1]", async () => {
    const opened = await open("providers: [{ name: claude, model: two }]", { provider: `${quick}\n    enabled: true` });
    expect((await askModel(opened, { model: "shared-model" })).status).to.equal(200);
    const [call] = opened.provider.calls;
    expect([call?.path, call?.body.model, call?.headers["x-api-key"]]).to.deep.equal([
      "/v1/messages",
      "two",
      opened.providerKey,
    ]);
    expect((await opened.records())[0]?.action.target).to.equal("claude/two");
    await opened.stop();
    world = undefined;
    const refusals: readonly (readonly [route: string, provider: string, said: string])[] = [
      ["providers: [{ name: open, model: one }]", "enabled: false", "enabled"],
      ["providers: [{ name: nobody, model: one }]", "enabled: true", "nobody"],
    ];
    for (const [route, provider, said] of refusals) {
      const refusal = await open(route, { provider }).then(
        () => "started",
        (error: Error) => error.message,
      );
      expect(refusal)
        .to.match(/model_gateway\.routes\[0\]\.providers\[0\]\.name/)
        .and.to.contain(said);
    }
    const unnamed = openModelWorld({ routes: "[{ model: unlisted, providers: [{ name: open }] }]" }).then(
      () => "started",
      (error: Error) => error.message,
    );
    expect(await unnamed).to.contain("unlisted");
  });

  it("judge each provider: one that policy blocks is not fallen back to", async () => {
    const rules = `
  - id: open.not-claude
    title: Not there
    decision: block
    severity: low
    risk: 10
    match: { phase: input, protocol: model, target: "claude/*" }
    message: not there
`;
    const opened = await open(`${both}, fallback: true`, { rules });
    opened.provider.script = scripts.says(500);
    expect((await askModel(opened, { model: "shared-model" })).status).to.equal(403);
    expect(opened.provider.calls.map(({ body }) => body.model)).to.deep.equal(["one"]);
  });

  it("do not fall back once the client was told anything", async () => {
    const opened = await open(`${both}, fallback: true`, { provider: `${quick}\n    idle_timeout_ms: 200` });
    const chunk = { id: "c", object: "chat.completion.chunk", created: 1, model: "one" };
    const event = {
      ...chunk,
      choices: [{ index: 0, delta: { role: "assistant", content: "so " }, finish_reason: null }],
    };
    opened.provider.next(scripts.stalls(new Array<string>(200).fill(`data: ${JSON.stringify(event)}\n\n`)));
    const told = await askModel(opened, { model: "shared-model", stream: true });
    expect(told.status).to.equal(200);
    expect(told.text).to.include('"so "').and.include("provider_timeout");
    expect(opened.provider.calls.length).to.equal(1);
    expect((await opened.records()).at(-1)).to.include({ kind: "outcome", effect: "unknown" });
  });

  it("leave a provider that keeps failing alone: breaker.failures", async () => {
    for (const [failures, expected] of [
      [2, 2],
      [100, 6],
    ] as const) {
      const opened = await open(both, { provider: `${quick}\n    breaker: { failures: ${failures}, rest_ms: 60000 }` });
      opened.provider.script = scripts.says(500);
      expect(await asked(opened, 6)).to.have.length(expected);
      await opened.stop();
    }
    world = undefined;
  });

  it("share sessions out: weight, and canary.percent", async () => {
    const counts: Record<string, number> = {};
    for (const [name, route] of [
      ["even", "providers: [{ name: open, model: one, weight: 50 }, { name: claude, model: two, weight: 50 }]"],
      ["one", "providers: [{ name: open, model: one, weight: 1000 }, { name: claude, model: two, weight: 1 }]"],
      ["canary", "providers: [{ name: open, model: one }], canary: { name: claude, model: two, percent: 30 }"],
      ["quiet", "providers: [{ name: open, model: one }]"],
    ] as const) {
      const opened = await open(route);
      const models = await asked(opened, 40);
      expect(await asked(opened, 40), "the same sessions go the same way").to.deep.equal(models);
      counts[name] = models.filter((model) => model === "two").length;
      await opened.stop();
    }
    world = undefined;
    expect(counts.one).to.be.below(3);
    expect(counts.quiet).to.equal(0);
    expect(counts.even).to.be.within(8, 32);
    expect(counts.canary).to.be.within(3, 24);
  });

  it("try again as often as max_retries says", async () => {
    for (const [retries, expected] of [
      [0, 1],
      [1, 2],
    ] as const) {
      const opened = await open(both, { provider: `max_retries: ${retries}` });
      opened.provider.script = scripts.says(503);
      expect(await asked(opened, 1)).to.have.length(expected);
      await opened.stop();
    }
    world = undefined;
  });
});
