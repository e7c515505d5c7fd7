import { expect } from "chai";
import {
  card,
  chatAnswer,
  chatChunks,
  GuardedSite,
  mail,
  messageEvents,
  responseAnswer,
  token,
} from "./guarded-site.ts";

const secrets = { "a card number": card.replaceAll(" ", "-"), "an e-mail address": mail, "a token": token };

/** Places of an answer beside its text, each with the secret in it. */
const members: Readonly<Record<string, (secret: string) => Parameters<typeof chatAnswer>>> = {
  "the id": (id) => [{ content: "Hello." }, {}, { id }],
  "the model": (model) => [{ content: "Hello." }, {}, { model }],
  "the fingerprint": (system_fingerprint) => [{ content: "Hello." }, {}, { system_fingerprint }],
  "the reason of the end": (finish_reason) => [{ content: "Hello." }, { finish_reason }],
  "the role": (role) => [{ content: "Hello.", role }],
  "the name": (name) => [{ content: "Hello.", name }],
  "a refusal": (refusal) => [{ refusal }],
  "a thought": (reasoning_content) => [{ content: "Hello.", reasoning_content }],
  "an annotation": (title) => [{ content: "Hello.", annotations: [{ type: "url_citation", url_citation: { title } }] }],
  "the id of a tool call": (id) => [
    { tool_calls: [{ index: 0, id, type: "function", function: { name: "f", arguments: "{}" } }] },
  ],
  "the name of a tool": (name) => [
    { tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name, arguments: "{}" } }] },
  ],
  "an unknown member": (aside) => [{ content: "Hello.", aside }],
};

describe("a secret in members of an answer that are not its text", () => {
  let site: GuardedSite;
  before(async () => {
    site = await GuardedSite.open(["pii-guard", "secret-egress"]);
  });
  after(() => site?.stop());

  for (const [where, make] of Object.entries(members)) {
    it(`is not passed on, whole or streamed: ${where} [S59, S60]`, async () => {
      for (const secret of Object.values(secrets)) {
        const [message, choice = {}, more = {}] = make(secret);
        const whole = await site.whole("chat", chatAnswer(message, choice, more));
        expect(whole.text, `whole: ${secret}`).to.not.include(secret);
        const asked = site.world.provider.calls.length;
        const streamed = await site.streamed("chat", chatChunks([message], choice, more));
        expect(streamed.text, `streamed: ${secret}`).to.not.include(secret);
        expect(site.world.provider.calls.length).to.equal(asked + 1);
      }
    });
  }

  it("is not passed on in the events of the other APIs [S59, S60]", async () => {
    for (const secret of Object.values(secrets)) {
      for (const changed of [{ id: secret }, { model: secret }, { role: secret }]) {
        expect((await site.streamed("messages", messageEvents(["Hello."], changed))).text).to.not.include(secret);
      }
      const response = responseAnswer([{ type: "output_text", text: "Hello.", annotations: [] }], { id: secret });
      const events = [
        { type: "response.created", sequence_number: 0, response: { ...response, output: [], status: "in_progress" } },
        { type: "response.completed", sequence_number: 1, response },
      ];
      expect((await site.streamed("responses", events)).text).to.not.include(secret);
    }
  });

  it("does not hold up what is usual: ids, models and fingerprints of providers pass in a stream [S60]", async () => {
    const usual = { id: "chatcmpl-9vQ2K1xYbTnd7", model: "open-1-2026-01-15", system_fingerprint: "fp_44709d6fcb" };
    const told = await site.streamed("chat", chatChunks([{ role: "assistant", content: "Hello." }], {}, usual));
    expect(told.text).to.include("Hello.").and.include("[DONE]").and.include(usual.id);
  });
});
