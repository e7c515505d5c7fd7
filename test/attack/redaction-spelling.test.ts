import { expect } from "chai";
import { card, chatAnswer, chatChunks, GuardedSite, mail, messageAnswer, token } from "./guarded-site.ts";

const mapped = (text: string, by: (code: number) => number): string =>
  Array.from(text, (letter) => String.fromCodePoint(by(letter.charCodeAt(0)))).join("");
const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39;
const digitsFrom = (zero: number) => (code: number) => (isDigit(code) ? zero + code - 0x30 : code);
const fullWidth = (code: number): number => (code > 0x20 && code < 0x7f ? code + 0xfee0 : code);
const between = (mark: string) => (text: string) => Array.from(text).join(mark);

/** What a reader takes for the card, the address and the token. */
const spellings: Readonly<Record<string, readonly string[]>> = {
  "full-width characters": [card, mail, token].map((text) => mapped(text, fullWidth)),
  "digits of other scripts": [0x660, 0x966, 0xff10, 0x1d7ce, 0x1d7f6].map((zero) => mapped(card, digitsFrom(zero))),
  "zero-width characters": [card, mail, token].flatMap((text) =>
    ["\u200b", "\u2060", "\ufeff"].map((mark) => between(mark)(text)),
  ),
  "invisible marks and controls": ["\u00ad", "\u034f", "\ufe0f", "\u{e0020}", "\u0007"].map((mark) =>
    between(mark)(token),
  ),
  "digits in key caps": [between("\ufe0f\u20e3")(card)],
  "blanks and dashes of print": ["\u2003", "\u2011", "\u2013", "\u2212"].map((mark) => card.replaceAll(" ", mark)),
  "letters that look alike": [token.replace("p", "р").replaceAll("e", "е"), mail.replaceAll("e", "е")],
};

describe("a secret in characters that readers take for others", () => {
  const tools = Object.entries(spellings).map(([name, texts]) => [name.replaceAll(/\W/g, "_"), name, texts] as const);
  let site: GuardedSite;
  before(async () => {
    const answers = tools.map(([tool, , texts]) => {
      const content = [{ type: "text", text: `née ${texts[0]}, thanks.` }];
      return [tool, { result: { content, structuredContent: { "a/b": texts } } }];
    });
    site = await GuardedSite.open(["pii-guard", "secret-egress"], Object.fromEntries(answers));
  });
  after(() => site?.stop());

  for (const [tool, name, texts] of tools) {
    it(`is cut out of the answer, and nothing else: ${name} [S59, S80]`, async () => {
      for (const text of texts) {
        const told = await site.whole("chat", chatAnswer({ content: `née ${text}, thanks.` }));
        expect(messageOf(told.json())).to.match(/^née \[(?:card|email|redacted)\], thanks\.$/);
        const content = [{ type: "text", text: `née ${text}, thanks.` }];
        const said = (await site.whole("messages", messageAnswer(content))).json() as { content: [{ text: string }] };
        expect(said.content[0].text).to.match(/^née \[(?:card|email|redacted)\], thanks\.$/);
      }
    });

    it(`is in no stream, cut anywhere: ${name} [S60, S80]`, async () => {
      const [text = ""] = texts;
      const letters = Array.from(`née ${text}, thanks. ${"And so on. ".repeat(60)}`);
      const told = await site.streamed("chat", chatChunks(letters.map((content) => ({ content }))));
      expect(told.text).to.include("[DONE]");
      expect(contentOf(told.text)).to.match(/^née \[(?:card|email|redacted)\], thanks\. And so on/);
    });

    it(`is in no result of a tool: ${name} [S59, S80]`, async () => {
      const told = await site.call(tool);
      expect(told).to.match(/née \[(?:card|email|redacted)\], thanks\./);
      for (const text of texts) expect(told).to.not.include(text);
    });
  }

  it("is left alone where it is none: other languages, signs and pictures pass as they came [S80]", async () => {
    const plain = "Grüße – voilà… «да, это текст» 数据：１２ 件，👍🏽 ✔️ №5 ½ 2020–2024";
    const told = await site.whole("chat", chatAnswer({ content: plain }));
    expect(messageOf(told.json())).to.equal(plain);
  });
});

function messageOf(answer: object): string {
  return (answer as { choices: [{ message: { content: string } }] }).choices[0].message.content;
}

function contentOf(stream: string): string {
  const chunks = stream.split("\n\n").filter((event) => event.startsWith("data: {"));
  const texts = chunks.map((event) => JSON.parse(event.slice(6)) as { choices: [{ delta: { content?: string } }] });
  return texts.map(({ choices: [{ delta }] }) => delta.content ?? "").join("");
}
