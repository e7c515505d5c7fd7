import { expect } from "chai";
import { askModel } from "../e2e/model/ask.ts";
import { card, chatAnswer, chatChunks, GuardedSite, responseAnswer } from "./guarded-site.ts";

/** Tokens of a text as providers list them. */
function tokensOf(text: string): readonly object[] {
  return Array.from(text, (token) => {
    const own = { token, logprob: -0.1, bytes: [...Buffer.from(token)] };
    return { ...own, top_logprobs: [own] };
  });
}

/** The text that all tokens, and all bytes, of an answer spell. */
function spelled(text: string): string {
  const tokens = Array.from(text.matchAll(/"token":"(.)"/g), ([, token]) => token).join("");
  const bytes = Array.from(text.matchAll(/"bytes":\[(\d+)\]/g), ([, byte]) => String.fromCharCode(Number(byte)));
  return `${tokens} ${bytes.join("")}`;
}

describe("a card number in the tokens of an answer whose text is redacted", () => {
  const said = `Charge ${card}, please.`;
  let site: GuardedSite;
  before(async () => {
    site = await GuardedSite.open(["pii-guard"]);
  });
  after(() => site?.stop());

  it("is not in a whole answer of the chat API: neither tokens nor their bytes are passed on [S80]", async () => {
    const logprobs = { content: tokensOf(said), refusal: null };
    const told = await site.whole("chat", chatAnswer({ content: said }, { logprobs }));
    expect(told.status).to.equal(200);
    expect(told.text).to.include("Charge [card], please.").and.include('"logprobs":null');
    expect(spelled(told.text)).to.not.include("4");
  });

  it("is not in a whole answer of the responses API [S80]", async () => {
    const part = { type: "output_text", text: said, annotations: [], logprobs: tokensOf(said) };
    const told = await site.whole("responses", responseAnswer([part]));
    expect(told.text).to.include("Charge [card], please.").and.include('"logprobs":[]');
    expect(spelled(told.text)).to.not.include("4");
  });

  it("is not in a stream, where each chunk brings the tokens of its own text [S80]", async () => {
    const chunks = Array.from(said).flatMap((letter) =>
      chatChunks([{ content: letter }], { logprobs: { content: tokensOf(letter), refusal: null } }).slice(0, 1),
    );
    const told = await site.streamed("chat", [...chunks, ...chatChunks([])]);
    expect(told.text).to.include("[DONE]");
    expect(contentOf(told.text)).to.equal("Charge [card], please.");
    expect(spelled(told.text)).to.not.include("4");
  });

  it("is not in the tokens of a stream whose text says something else [S80]", async () => {
    const logprobs = { content: tokensOf(card), refusal: null };
    const told = await site.streamed("chat", chatChunks([{ content: "Nothing." }], { logprobs }));
    expect(contentOf(told.text)).to.equal("Nothing.");
    expect(spelled(told.text)).to.not.include("4");
  });

  it("goes by no spelling of the name: JSON may escape it [S80]", async () => {
    const [chunk, end] = chatChunks([{ content: "Nothing." }], { logprobs: { content: tokensOf(card) } });
    const escaped = JSON.stringify(chunk).replaceAll("logprobs", "logp\\u0072obs");
    site.world.provider.next(async (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(`data: ${escaped}\n\ndata: ${JSON.stringify(end)}\n\ndata: [DONE]\n\n`);
    });
    const told = await askModel(site.world, { stream: true });
    expect(contentOf(told.text)).to.equal("Nothing.");
    expect(spelled(told.text)).to.not.include("4");
  });
});

/** The text of all chunks. */
function contentOf(stream: string): string {
  return Array.from(stream.matchAll(/"content":"((?:[^"\\]|\\.)*)"/g), ([, text]) => text).join("");
}
