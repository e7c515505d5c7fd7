import { readFile } from "node:fs/promises";
import { expect } from "chai";
import { encode } from "gpt-tokenizer/encoding/o200k_base";
import { contentOf, estimateTokens } from "../../../core/usage/request-content.ts";
import { Tokenizer } from "../../../core/usage/tokenizer.ts";
import { growthOf, maxGrowth } from "../../support/duration.ts";

const exactLength = 32_000;

describe("Tokenizer", () => {
  let tokenizer: Tokenizer;
  before(async () => {
    tokenizer = await Tokenizer.load();
  });

  it("counts by the published encoding", () => {
    for (const text of ["", "hello world", "naïve café, 你好, 🙂🙂", "const a = { b: [1, 2, 3] };\n\n\t\treturn a;"]) {
      expect(tokenizer.countText(text), text).to.equal(encode(text).length);
    }
  });

  it("counts long texts and code within one in a hundred of it", async () => {
    for (const path of ["core/README.md", "package-lock.json", "core/compose/compose.ts"]) {
      const text = (await readFile(path, "utf8")).slice(0, exactLength);
      const exact = encode(text).length;
      expect(tokenizer.countText(text), path).to.be.within(exact, exact * 1.03);
    }
  });

  it("counts texts beyond its bound from evenly spaced pieces, within one in ten", async () => {
    const text = await readFile("package-lock.json", "utf8");
    expect(text.length).to.be.above(3 * exactLength);
    const exact = encode(text).length;
    expect(tokenizer.countText(text)).to.be.within(exact * 0.9, exact * 1.1);
  });

  it("takes control tokens of models for text", () => {
    expect(tokenizer.countText("<|endoftext|>")).to.be.above(3);
  });

  it("never says that a long text is next to nothing", () => {
    expect(tokenizer.countText(" ".repeat(1_000_000))).to.be.at.least(125_000);
  });

  const hostile: Readonly<Record<string, string>> = {
    "one letter": "a".repeat(65_536),
    "one mark": "!".repeat(65_536),
    spaces: " ".repeat(65_536),
    "line feeds": "\n".repeat(65_536),
    digits: "1".repeat(65_536),
    emoji: "😀".repeat(16_384),
    "combining marks": `a${"\u0301".repeat(32_767)}`,
    "zero-width characters": "\u200b".repeat(21_845),
    "lone surrogates": "\ud800".repeat(21_845),
    "pairs of letters": "ab".repeat(32_768),
    "control tokens": "<|endoftext|>".repeat(5_000),
    "words of one letter": "a ".repeat(32_768),
  };
  for (const [name, text] of Object.entries(hostile)) {
    it(`counts 64 kB of ${name} in linear time`, async () => {
      const prepare = (size: number): string => text.slice(0, size);
      expect(await growthOf(prepare, (part) => tokenizer.countText(part), text.length / 4)).to.be.below(maxGrowth);
    });
  }

  it("counts 4 MiB, and 100,000 texts, in linear time", async () => {
    const long = (size: number): string => "a".repeat(size);
    expect(await growthOf(long, (text) => tokenizer.countText(text), 1_048_576)).to.be.below(maxGrowth);
    const many = (size: number) => ({ texts: Array.from({ length: size }, () => "word"), flatTokens: 0 });
    expect(await growthOf(many, (request) => tokenizer.countRequest(request), 25_000)).to.be.below(maxGrowth);
  });
});

describe("contentOf(body)", () => {
  const tools = [{ name: "get_weather", description: "Weather", input_schema: { type: "object" } }];

  it("reads what both APIs call system, messages and tools", () => {
    const messages = contentOf({
      model: "m",
      system: [{ type: "text", text: "be brief", cache_control: { type: "ephemeral" } }],
      messages: [
        { role: "user", content: "hello" },
        { role: "assistant", content: [{ type: "tool_use", id: "t", name: "get_weather", input: { city: "Rome" } }] },
        {
          role: "user",
          content: [{ type: "tool_result", tool_use_id: "t", content: [{ type: "text", text: "sun" }] }],
        },
      ],
      tools,
    });
    const texts = ["be brief", "hello", "get_weather", '{"city":"Rome"}', "sun", JSON.stringify(tools)];
    expect(messages.texts).to.deep.equal(texts);
    const call = { id: "t", type: "function", function: { name: "get_weather", arguments: '{"city":"Rome"}' } };
    const chat = contentOf({
      model: "m",
      messages: [
        { role: "system", content: "be brief" },
        { role: "user", content: [{ type: "text", text: "hello" }] },
        { role: "assistant", content: null, tool_calls: [call] },
        { role: "tool", tool_call_id: "t", content: "sun" },
      ],
      tools,
    });
    expect(chat.texts).to.deep.equal(texts);
    expect([messages.flatTokens, chat.flatTokens]).to.deep.equal([15, 19]);
  });

  it("takes pictures and documents at flat rates, whatever their bytes", () => {
    const data = "A".repeat(3_200_000);
    const flat = (block: Readonly<Record<string, string | Readonly<Record<string, string>>>>): number => {
      const content = contentOf({ messages: [{ role: "user", content: [block] }] });
      expect(content.texts).to.deep.equal([]);
      return content.flatTokens - contentOf({ messages: [{ role: "user", content: [] }] }).flatTokens;
    };
    expect(flat({ type: "image", source: { type: "base64", media_type: "image/png", data } })).to.equal(1_600);
    expect(flat({ type: "image_url", image_url: { url: `data:image/png;base64,${data}` } })).to.equal(1_600);
    const pdf = { type: "base64", media_type: "application/pdf", data };
    expect(flat({ type: "document", source: pdf })).to.equal(100_000);
    expect(flat({ type: "input_audio", input_audio: { data, format: "wav" } })).to.equal(100_000);
  });

  it("reads a document that is text as text", () => {
    const source = { type: "text", media_type: "text/plain", data: "a page" };
    const { texts } = contentOf({ messages: [{ role: "user", content: [{ type: "document", source }] }] });
    expect(texts).to.deep.equal(["a page"]);
  });

  it("makes nothing of a body that is none", () => {
    for (const body of [{}, { messages: 5 }, { messages: [1, null, "x"] }, { messages: {}, tools: 7 }]) {
      expect(() => contentOf(body)).to.not.throw();
    }
  });
});

describe("estimateTokens(content)", () => {
  it("is one for four bytes, and the flat rates", () => {
    expect(estimateTokens({ texts: ["12345678", "é"], flatTokens: 7 })).to.equal(10);
  });
});
