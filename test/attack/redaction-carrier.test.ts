import { expect } from "chai";
import { askModel } from "../e2e/model/ask.ts";
import { scripts } from "../fixture/model-provider.ts";
import { send } from "../support/wire.ts";
import { card, chatChunks, GuardedSite, mail, token } from "./guarded-site.ts";

const uri = "note://carrier";
const text = (said: string): object => ({ type: "text", text: said });
const base64 = (said: string): string => Buffer.from(`it is ${said}, keep it to yourself`).toString("base64");

/** Each form in which an answer of a server may carry something, by the name of the tool that gives it. */
const carriers: Readonly<Record<string, (said: string) => object>> = {
  text: (said) => ({ content: [text(`It is ${said}.`)] }),
  structure: (said) => ({ content: [], structuredContent: { rows: [{ note: `It is ${said}.` }] } }),
  failure: (said) => ({ isError: true, content: [text(`It is ${said}.`)] }),
  link: (said) => ({ content: [{ type: "resource_link", uri, name: "note", description: `It is ${said}.` }] }),
  encoded: (said) => ({ content: [text(`a: ${base64(said)} b`)] }),
  blob: (said) => ({ content: [{ type: "resource", resource: { uri, blob: base64(said) } }] }),
  escaped: (said) => ({ content: [text(JSON.stringify({ rows: [`\n${said}\t`], more: JSON.stringify([said]) }))] }),
};
const secrets = { token, mail, card };

const answers = Object.fromEntries(
  Object.entries(secrets).flatMap(([what, said]) =>
    Object.entries(carriers).map(([carrier, make]) => [`${carrier}_${what}`, { result: make(said) }]),
  ),
);

describe("a secret or personal data in whatever carries an answer, with the shipped plugins in phase `output`", () => {
  let site: GuardedSite;
  before(async () => {
    site = await GuardedSite.open(["secret-egress", "pii-guard"], answers);
  });
  after(() => site?.stop());

  for (const [what, said] of Object.entries(secrets)) {
    for (const carrier of Object.keys(carriers)) {
      it(`does not leave: ${what}, ${carrier} [S59]`, async () => {
        const came = await callRaw(`${carrier}_${what}`);
        for (const form of [said, base64(said), JSON.stringify(said).slice(1, -1)]) expect(came).to.not.include(form);
      });
    }
  }

  it("does not leave a stream that its provider cuts at any byte, in the middle of a character or of an event [S60]", async () => {
    const chunks = chatChunks([
      { content: "Zürich 🔑: " },
      { content: token },
      { content: ` — ${"and so on ".repeat(40)}` },
    ]);
    const bytes = Buffer.from(
      [...chunks.map((each) => `data: ${JSON.stringify(each)}\n\n`), "data: [DONE]\n\n"].join(""),
    );
    const [letters, secret] = [bytes.indexOf("Zürich"), bytes.indexOf(token)];
    const boundary = bytes.indexOf("\n\n", letters);
    const cuts = [
      ...range(letters, letters + Buffer.byteLength("Zürich 🔑")),
      ...range(boundary - 1, boundary + 4),
      ...range(secret - 1, secret + token.length + 2),
    ];
    const whole = await ask([bytes]);
    expect(whole).to.include("Zürich 🔑").and.not.include(token);
    for (const at of cuts) {
      const came = await ask([bytes.subarray(0, at), bytes.subarray(at)]);
      expect(came, `cut at ${at}`).to.equal(whole);
    }
  });

  /** The answer to a call, byte by byte: a client of its own may not take what is left of a picture. */
  async function callRaw(name: string): Promise<string> {
    const { status, body } = await send(site.world.gateway.url, {
      method: "POST",
      target: "/mcp",
      headers: [
        ["x-api-key", site.world.keys.agent],
        ["content-type", "application/json"],
      ],
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: {} } }),
    });
    expect(status, body).to.equal(200);
    expect(body).to.match(/"content"|"error"/);
    return body;
  }

  /** What a client reads of a stream that comes in these pieces. */
  async function ask(pieces: readonly Buffer[]): Promise<string> {
    site.world.provider.next(scripts.streams(pieces, 1));
    const told = await askModel(site.world, { stream: true });
    expect(told.text).to.include("[DONE]");
    const deltas = [...told.text.matchAll(/^data: (\{.*)$/gm)].map(([, data = ""]) => JSON.parse(data) as Chunk);
    return deltas.map(({ choices }) => choices[0]?.delta.content ?? "").join("");
  }
});

function range(start: number, end: number): readonly number[] {
  return Array.from({ length: end - start }, (_, at) => start + at);
}

interface Chunk {
  readonly choices: readonly { readonly delta: { readonly content?: string } }[];
}
