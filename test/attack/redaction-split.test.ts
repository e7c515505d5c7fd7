import { expect } from "chai";
import {
  card,
  chatAnswer,
  GuardedSite,
  mail,
  messageAnswer,
  messageEvents,
  responseAnswer,
  token,
} from "./guarded-site.ts";

const keyBody = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";

/** Cut at every place into two; a place at which a part is empty is none. */
function halvesOf(secret: string): readonly (readonly [string, string])[] {
  return Array.from(secret.slice(1), (_, at) => [secret.slice(0, at + 1), secret.slice(at + 1)] as const);
}

const textParts = (type: string, texts: readonly string[]): readonly object[] => texts.map((text) => ({ type, text }));
const result = (content: readonly object[], more: object = {}): object => ({ result: { content, ...more } });
const fromThirds = [token.slice(0, 13), token.slice(13, 27), token.slice(27)];

const answers = {
  items: result(textParts("text", [`See ${card.slice(0, 10)}`, `${card.slice(10)}, thanks.`])),
  thirds: result(textParts("text", fromThirds)),
  letters: result(textParts("text", Array.from(card))),
  resources: result([
    { type: "text", text: `The token is ${token.slice(0, 9)}` },
    { type: "resource", resource: { uri: "note://a", text: `${token.slice(9)} of course` } },
  ]),
  structured: result(textParts("text", ["See the rows."]), {
    structuredContent: { lines: [token.slice(0, 9), token.slice(9)] },
  }),
  key: result(textParts("text", ["-----BEGIN PRIVATE KEY-----\n", `${keyBody}\n-----END PRIVATE KEY-----`])),
  neighbours: result(textParts("text", ["Contact", mail, "Thanks", mail]), {
    structuredContent: { people: ["Bob", mail, "Alice", mail], codes: ["4532", "1234", "1234", "1234", "9999"] },
  }),
  "resources/list": { result: { resources: [{ uri: "note://a", name: "note" }] } },
  "resources/templates/list": { result: { resourceTemplates: [] } },
  "resources/read": {
    result: {
      contents: [
        { uri: "note://a", text: token.slice(0, 20) },
        { uri: "note://b", text: token.slice(20) },
      ],
    },
  },
};

describe("a secret in parts of an answer that readers join", () => {
  let site: GuardedSite;
  before(async () => {
    site = await GuardedSite.open(["pii-guard", "secret-egress"], answers);
  });
  after(() => site?.stop());

  /** What is shown of two parts, one after the other. */
  async function shownOf(first: string, second: string): Promise<string> {
    const parts = [`née ${first}`, `${second}, thanks.`];
    const { content } = (await site.whole("messages", messageAnswer(textParts("text", parts)))).json() as unknown as {
      readonly content: readonly { readonly text: string }[];
    };
    return content.map(({ text }) => text).join("");
  }

  for (const [name, secret] of Object.entries({ card, token })) {
    it(`is in no two parts of a whole answer, cut anywhere: a ${name} [S59, S80]`, async () => {
      for (const [first, second] of halvesOf(secret)) {
        expect(await shownOf(first, second), first).to.match(/^née \[(?:card|redacted)\], thanks\.$/);
      }
    });
  }

  it("is in no two parts of a whole answer: an address, of which the second part is none by itself [S59, S80]", async () => {
    const at = mail.indexOf("@");
    for (const [first, second] of halvesOf(mail)) {
      const isOwn = first.length < at;
      const shown = await shownOf(first, second);
      expect(shown.replace(isOwn ? first : "", ""), first).to.match(/^née \.?\[email\]m?, thanks\.$/);
    }
  });

  it("is in no two parts of the other APIs [S59, S80]", async () => {
    const parts = [`née ${token.slice(0, 9)}`, `${token.slice(9)}, thanks.`];
    const chat = await site.whole("chat", chatAnswer({ content: textParts("text", parts) }));
    const responses = await site.whole("responses", responseAnswer(textParts("output_text", parts)));
    for (const { status, text } of [chat, responses]) {
      expect(status).to.equal(200);
      expect(text).to.include("née [redacted]").and.not.include(token.slice(0, 9)).and.not.include(token.slice(9));
    }
  });

  it("is in no two blocks of a stream, cut anywhere: the end of a block waits for the next [S60, S80]", async () => {
    const tail = `, thanks. ${"And so on. ".repeat(60)}`;
    for (const [first, second] of halvesOf(token)) {
      const told = await site.streamed("messages", messageEvents([`née ${first}`, `${second}${tail}`]));
      const texts = Array.from(told.text.matchAll(/"text_delta","text":"([^"]*)"/g), ([, text]) => text);
      expect(texts.join(""), first).to.equal(`née [redacted]${tail}`);
    }
  });

  for (const tool of ["items", "thirds", "letters", "resources", "structured", "key"] as const) {
    it(`is in no result of a tool: ${tool} [S59, S80]`, async () => {
      const told = await site.call(tool);
      expect(told).to.match(/\[(?:card|redacted)\]/);
      for (const piece of [card.slice(10), ...fromThirds, token.slice(9), token.slice(0, 9), keyBody]) {
        expect(told).to.not.include(piece);
      }
      expect(told).to.not.include('"text":"4"');
    });
  }

  it("is in no contents of a resource [S59, S80]", async () => {
    const told = await site.readResource("note://a");
    expect(told).to.include("[redacted]").and.not.include(token.slice(0, 20)).and.not.include(token.slice(20));
  });

  it("takes no neighbour with it: names beside addresses, and columns of numbers, pass [S80]", async () => {
    const told = JSON.parse(await site.call("neighbours")) as {
      readonly content: readonly { readonly text: string }[];
      readonly structuredContent: object;
    };
    expect(told.content.map(({ text }) => text)).to.deep.equal(["Contact", "[email]", "Thanks", "[email]"]);
    expect(told.structuredContent).to.deep.equal({
      people: ["Bob", "[email]", "Alice", "[email]"],
      codes: ["4532", "1234", "1234", "1234", "9999"],
    });
  });
});
