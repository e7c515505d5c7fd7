import { expect } from "chai";
import { scripts } from "../../fixture/model-provider.ts";
import { answerEvents } from "../../fixture/model-reply.ts";
import { askingRules } from "./ask.ts";
import { type ModelSdk, modelSdks, type SdkError } from "./sdk.ts";
import { type ModelWorld, openModelWorld } from "./world.ts";

const rules = `${askingRules}  - id: open.not-answered
    title: The word is not said by a model
    decision: block
    severity: high
    risk: 80
    match: { phase: output, protocol: model }
    when: leaves(output).exists(leaf, leaf.text.contains("forbidden"))
    message: the word is not said
`;
const models = ["chat-model", "messages-model", "responses-model"] as const;
const reply = { text: "It is sunny in Zürich today.", calls: [{ name: "weather", arguments: { city: "Zürich" } }] };

describe("the official model clients [R1.1-8, R1.1-9, R1.1-10, R1.1-11, R1.1-16, R1.2-1, R2.9-1, R2.9-3, R4.1-8, R4.1-9, R4.1-10, R9-2]", () => {
  let world: ModelWorld;
  let sdks: readonly ModelSdk[];
  before(async () => {
    world = await openModelWorld({ rules });
    sdks = modelSdks(world.gateway.url, world.keys.agent);
  });
  after(() => world.stop());
  beforeEach(() => {
    world.provider.script = scripts.answers(reply);
  });

  const each = (title: string, check: (sdk: ModelSdk, model: string) => Promise<void>): void => {
    for (const index of [0, 1, 2, 3]) {
      for (const model of models) {
        it(`${["openai 6.x", "anthropic 0.x", "anthropic 1.x", "openai 6.x responses"][index]}, ${model}: ${title}`, () =>
          check(sdks[index] as ModelSdk, model));
      }
    }
  };
  /** What the step sends to the providers. */
  const sentBy = async (step: () => Promise<unknown>): Promise<number> => {
    const before = world.provider.calls.length;
    await step();
    return world.provider.calls.length - before;
  };
  const refusalOf = (call: Promise<unknown>): Promise<SdkError> =>
    call.then(
      () => expect.fail("expected an error"),
      (error: SdkError) => error,
    );
  const codeOf = ({ error }: SdkError): string | undefined => error.code ?? error.error?.code;

  each("gets text, calls, stop reason and usage, streamed as whole", async (sdk, model) => {
    const question = { model, text: "How is the weather?", tools: true };
    const whole = await sdk.ask(question);
    expect(whole).to.deep.equal({ ...reply, stop: "tool", usage: { input: 11, output: 7 } });
    const pieces: string[] = [];
    expect(await sdk.stream({ ...question, onText: (text) => pieces.push(text) })).to.deep.equal(whole);
    expect(pieces.join("")).to.equal(reply.text);
    expect(pieces.length).to.be.above(1);
  });

  each("is told of a block once, with our code and the request's id, and the provider is not", async (sdk, model) => {
    for (const ask of [sdk.ask, sdk.stream]) {
      let error: SdkError | undefined;
      const sent = await sentBy(async () => {
        error = await refusalOf(ask({ model, text: "say the forbidden word" }));
      });
      expect(sent).to.equal(0);
      expect(error).to.include({ status: 403 });
      expect(codeOf(error as SdkError)).to.equal("policy_blocked");
      expect(error?.requestID).to.match(/^[0-9a-f-]{36}$/);
    }
  });

  each("is told of a review, asks again once it is approved, and is answered once", async (sdk, model) => {
    const question = { model, text: `please review ${sdk.name} ${model}` };
    const records = (await world.records()).length;
    const sent = await sentBy(async () => {
      const error = await refusalOf(sdk.ask(question));
      expect(error.status).to.equal(403);
      expect(codeOf(error)).to.equal("approval_required");
      const [, id] = /Approval (apr_[0-9a-f]{32}) is pending/.exec(error.message) ?? [];
      const approved = await fetch(`${world.gateway.adminUrl}/admin/v1/approvals/${id}/approve`, {
        method: "POST",
        headers: { "x-api-key": world.keys.operator, "content-type": "application/json" },
        body: "{}",
      });
      expect(approved.status).to.equal(200);
    });
    expect(sent).to.equal(0);
    // One attempt was one decision: the client did not repeat what was held.
    expect((await world.records()).length - records).to.equal(1);
    expect(await sentBy(() => sdk.ask(question))).to.equal(1);
    expect(await sentBy(() => refusalOf(sdk.ask(question)))).to.equal(0);
  });

  each("gets an answer blocked that says what it must not, whole or half-way", async (sdk, model) => {
    world.provider.script = scripts.answers({ text: `${"well, ".repeat(100)} the forbidden word` });
    const whole = await refusalOf(sdk.ask({ model, text: "say it" }));
    expect(codeOf(whole)).to.equal("policy_blocked");
    let seen = "";
    const sent = await sentBy(async () => {
      const error = await refusalOf(
        sdk.stream({
          model,
          text: "say it",
          onText: (text) => {
            seen += text;
          },
        }),
      );
      expect(error.message).to.include("the word is not said");
    });
    expect(sent).to.equal(1);
    expect(seen)
      .to.match(/^(well, )+/)
      .and.not.include("forb");
  });

  each("has the provider's own refusal in its API's words, with the status", async (sdk, model) => {
    world.provider.script = scripts.says(400);
    const error = await refusalOf(sdk.ask({ model, text: "hello" }));
    expect(error.status).to.equal(400);
    expect(error.message).to.include("status 400");
  });

  each("is told of a model that no route serves", async (sdk) => {
    const error = await refusalOf(sdk.ask({ model: "chat-modle", text: "hello" }));
    expect(error).to.include({ status: 404 });
    expect(codeOf(error)).to.equal("model_not_found");
    expect(error.message).to.include("chat-model");
  });

  each("frees the provider's connection when it aborts half-way", async (sdk, model) => {
    const abort = new AbortController();
    world.provider.script = (response, call) => {
      const events = answerEvents(call.api, { text: "word ".repeat(2_000) });
      return scripts.streams(events, 1)(response, call);
    };
    let text = "";
    await refusalOf(
      sdk.stream({
        model,
        text: "go on",
        signal: abort.signal,
        onText: (piece) => {
          text += piece;
          if (text.length > 500) abort.abort();
        },
      }),
    );
    const call = world.provider.calls.at(-1);
    await waitFor(() => call?.brokenAtMs !== undefined);
    await waitFor(async () => (await world.records()).at(-1)?.kind === "outcome");
    expect((await world.records()).at(-1)).to.include({ kind: "outcome", effect: "unknown", reason: "CANCELLED" });
  });
});

async function waitFor(holds: () => boolean | Promise<boolean>): Promise<void> {
  const until = performance.now() + 60_000;
  while (!(await holds())) {
    if (performance.now() > until) throw new Error("waited for too long");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
