import { expect } from "chai";
import { askingRules } from "../e2e/model/ask.ts";
import { secret, writeMarker } from "../e2e/model/leak.ts";
import { type ModelWorld, openModelWorld } from "../e2e/model/world.ts";
import { type ProviderCall, scripts } from "../fixture/model-provider.ts";
import { answerEvents } from "../fixture/model-reply.ts";
import { until } from "../support/event-stream.ts";
import { PackFolders } from "../support/policy-pack.ts";
import { type Answer, Library, type Question } from "./library.ts";

const libraries: Readonly<Record<string, string>> = {
  "AI SDK": "responses-ai-sdk",
  "OpenAI Agents SDK": "responses-agents-sdk",
  LangChain: "responses-langchain",
};
const models = ["chat-model", "messages-model", "responses-model"] as const;
const sunny = "It is sunny in Zürich today.";
const calling = { text: "One moment.", calls: [{ name: "weather", arguments: { city: "Zürich" } }] };

interface Bench {
  readonly world: ModelWorld;
  ask(question: Question): Promise<Answer>;
  /** The calls that have reached the provider since the case began. */
  calls(): readonly ProviderCall[];
}

/** What every library is asked for of every model. */
const cases: Readonly<Record<string, (bench: Bench, model: string) => Promise<void>>> = {
  plain: async ({ ask }, model) => {
    expect(await ask({ model, text: "How is the weather?" })).to.deep.equal({ text: sunny, pieces: [], calls: [] });
  },

  streamed: async ({ ask }, model) => {
    const { text, pieces } = await ask({ model, text: "How is the weather?", stream: true });
    expect([text, pieces.join("")]).to.deep.equal([sunny, sunny]);
    expect(pieces.length).to.be.above(1);
  },

  "with a tool that the client runs": async ({ world, ask, calls }, model) => {
    for (const stream of [false, true]) {
      const before = calls().length;
      world.provider.next(scripts.answers(calling), scripts.answers({ text: sunny }));
      const answer = await ask({ model, text: "How is it in Zürich?", tools: true, stream });
      expect(answer).to.include({ text: sunny });
      expect(answer.calls).to.deep.equal([{ city: "Zürich" }]);
      expect(calls().length - before).to.equal(2);
      for (const text of ["How is it in Zürich?", "One moment.", "sunny"]) {
        expect(calls().at(-1)?.text).to.include(text);
      }
    }
  },

  "aborted in mid-stream": async ({ world, ask, calls }, model) => {
    const words = "word ".repeat(2_000);
    world.provider.script = (response, call) =>
      scripts.streams(answerEvents(call.api, { text: words }), 1)(response, call);
    const { pieces } = await ask({ model, text: "go on", stream: true, abortAfter: 500 });
    expect(pieces.join("").length).to.be.within(500, words.length - 1);
    await until(() => calls()[0]?.brokenAtMs);
    const last = await until(async () => {
      const record = (await world.records()).at(-1);
      return record?.kind === "outcome" && record;
    });
    expect(last).to.include({ effect: "unknown", reason: "CANCELLED" });
    expect(calls().length).to.equal(1);
  },

  blocked: async ({ ask, calls }, model) => {
    for (const stream of [false, true]) {
      const { error } = await ask({ model, text: "say the forbidden word", stream });
      expect(error).to.include({ status: 403, code: "policy_blocked" });
      expect(error?.message).to.include("the word is not said");
    }
    expect(calls()).to.deep.equal([]);
  },

  "held, approved and asked once more": async ({ world, ask, calls }, model) => {
    const question = { model, text: `please review ${model}` };
    const { error } = await ask(question);
    expect(error).to.include({ status: 403, code: "approval_required" });
    const [, id] = /Approval (apr_[0-9a-f]{32}) is pending/.exec(error?.message ?? "") ?? [];
    expect(calls()).to.deep.equal([]);
    const approved = await fetch(`${world.gateway.adminUrl}/admin/v1/approvals/${id}/approve`, {
      method: "POST",
      headers: { "x-api-key": world.keys.operator, "content-type": "application/json" },
      body: "{}",
    });
    expect(approved.status).to.equal(200);
    expect(await ask(question)).to.include({ text: sunny });
    expect((await ask(question)).error).to.include({ code: "approval_required" });
    expect(calls().length).to.equal(1);
  },

  redacted: async ({ world, ask }, model) => {
    const text = `The key is ${secret}: keep it.`;
    world.provider.script = scripts.answers({ text });
    const whole = await ask({ model, text: "What is the key?" });
    world.provider.script = (response, call) =>
      scripts.streams(answerEvents(call.api, { text }, (all) => all.match(/.{1,7}/g) ?? []))(response, call);
    const streamed = await ask({ model, text: "What is the key?", stream: true });
    const marked = "The key is [mark]: keep it.";
    expect([whole.text, streamed.text, streamed.pieces.join("")]).to.deep.equal([marked, marked, marked]);
  },
};

describe("libraries that speak the responses API, unchanged, in front of a gateway", () => {
  const folders = new PackFolders();
  let world: ModelWorld;
  before(async () => {
    world = await openModelWorld({
      rules: askingRules,
      policy: `plugins: [{ path: "${await writeMarker(folders)}", phases: [output] }]`,
    });
  });
  after(async () => {
    await world.stop();
    await folders.remove();
  });

  for (const [name, program] of Object.entries(libraries)) {
    describe(name, () => {
      let library: Library;
      before(() => {
        library = new Library(program, { GATEWAY_URL: world.gateway.url, GATEWAY_KEY: world.keys.agent });
      });
      after(() => library.stop());

      for (const model of models) {
        for (const [title, check] of Object.entries(cases)) {
          it(`${title}, ${model}`, async () => {
            world.provider.script = scripts.answers({ text: sunny });
            const before = world.provider.calls.length;
            // Each library asks for its own review.
            const ask = (question: Question): Promise<Answer> =>
              library.ask({ ...question, text: `${question.text} (${name})` });
            await check({ world, ask, calls: () => world.provider.calls.slice(before) }, model);
          });
        }
      }
    });
  }
});
