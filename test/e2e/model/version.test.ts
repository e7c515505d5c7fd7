import { expect } from "chai";
import { scripts } from "../../fixture/model-provider.ts";
import { type Asked, askModel, type Told } from "./ask.ts";
import { type ModelWorld, openModelWorld } from "./world.ts";

const rules = `
  - id: open.old-only
    title: The new version is not for everyone
    decision: block
    severity: low
    risk: 10
    match: { phase: input, protocol: model }
    when: continuation["anthropic-version"] == "2026-10-21" && args.messages.exists(m, string(m.content).contains("old"))
    message: ask in the old version
`;

describe("the version of the messages API [R7-1, R7-2, R9-3]", () => {
  let world: ModelWorld;
  before(async () => {
    world = await openModelWorld({ rules });
    world.provider.script = scripts.answers({ text: "Hello." });
  });
  after(() => world.stop());

  const ask = (headers: Asked["headers"], text?: string): Promise<Told> =>
    askModel(world, {
      api: "messages",
      ...(headers === undefined ? {} : { headers }),
      ...(text === undefined ? {} : { text }),
    });
  const served: readonly (readonly [string, Readonly<Record<string, string>>, string])[] = [
    ["is 2023-06-01 where none is asked for", {}, "2023-06-01"],
    ["is what `provider-version` says", { "provider-version": "2026-10-21" }, "2026-10-21"],
    ["is what `anthropic-version` says", { "anthropic-version": "2023-06-01" }, "2023-06-01"],
    ["is what both say", { "provider-version": "2026-10-21", "anthropic-version": "2026-10-21" }, "2026-10-21"],
  ];
  for (const [title, headers, version] of served) {
    it(`${title}, and the provider is asked in it`, async () => {
      expect((await ask(headers)).status).to.equal(200);
      expect(world.provider.calls.at(-1)?.headers["anthropic-version"]).to.equal(version);
    });
  }

  const refused: readonly (readonly [string, Readonly<Record<string, string>>, string])[] = [
    ["one that is not supported", { "provider-version": "2025-01-01" }, "version_unsupported"],
    ["an empty one", { "anthropic-version": "" }, "version_unsupported"],
    ["two that differ", { "provider-version": "2026-10-21", "anthropic-version": "2023-06-01" }, "version_conflict"],
    ["one with a blank", { "provider-version": "2023-06-01 x" }, "version_unsupported"],
  ];
  for (const [title, headers, code] of refused) {
    it(`refuses ${title} in the API's own error, and asks nobody`, async () => {
      const calls = world.provider.calls.length;
      const told = await ask(headers);
      expect(told.status).to.equal(400);
      expect(told.json()).to.include({ type: "error", request_id: told.headers.get("request-id") });
      expect(told.json().error).to.include({ type: "invalid_request_error", code });
      expect(world.provider.calls.length).to.equal(calls);
    });
  }

  it("is seen by policy, and stands in the fingerprint of the evidence [R9-4]", async () => {
    expect((await ask({}, "old ways")).status).to.equal(200);
    expect((await ask({ "provider-version": "2026-10-21" }, "old ways")).status).to.equal(403);
    const [first, second] = (await world.records()).filter(({ kind }) => kind === "decision").slice(-2);
    expect(first?.action.arguments_digest).to.be.a("string");
    expect(first?.action.fingerprint).to.not.equal(second?.action.fingerprint);
  });

  it("takes trial features along to the provider, judged with the rest", async () => {
    await ask({ "anthropic-beta": "interleaved-thinking-2025-05-14" });
    expect(world.provider.calls.at(-1)?.headers["anthropic-beta"]).to.equal("interleaved-thinking-2025-05-14");
  });
});
