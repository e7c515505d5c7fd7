import { expect } from "chai";
import fc from "fast-check";
import type { Json } from "../../../../core/action/json.ts";
import type { TokenUsage } from "../../../../core/action/model-api.ts";
import { readUsage, writeUsage } from "../../../../core/provider/wire/usage.ts";

const tokens = fc.integer({ min: 0, max: 1_000_000 });
const counted: fc.Arbitrary<TokenUsage> = fc.record(
  {
    inputTokens: fc.integer({ min: 2_000_001, max: 4_000_000 }),
    outputTokens: tokens,
    cachedInputTokens: tokens,
    cacheWriteTokens: tokens,
    reasoningTokens: tokens,
  },
  { requiredKeys: ["inputTokens", "outputTokens"], noNullPrototype: true },
);

describe("readUsage(api, body)", () => {
  it("reads in either API what was written in it", () => {
    fc.assert(
      fc.property(counted, fc.constantFrom("chat" as const, "messages" as const), (usage, api) => {
        expect(readUsage(api, { usage: writeUsage(api, usage) })).to.deep.equal(usage);
      }),
    );
  });

  it("counts what a cache held as input, as both providers bill it", () => {
    const usage = {
      input_tokens: 15,
      output_tokens: 12,
      cache_read_input_tokens: 10,
      cache_creation_input_tokens: null,
    };
    expect(readUsage("messages", { usage })).to.deep.equal({
      inputTokens: 25,
      outputTokens: 12,
      cachedInputTokens: 10,
    });
  });

  it("reads nothing of an answer that nobody counted", () => {
    for (const api of ["chat", "messages"] as const) {
      expect(readUsage(api, { usage: writeUsage(api, undefined) })).to.equal(undefined);
      expect(readUsage(api, {})).to.equal(undefined);
    }
  });

  it("believes no count that cannot be one", () => {
    const chat = (changed: Readonly<Record<string, Json>>): TokenUsage | undefined =>
      readUsage("chat", { usage: { prompt_tokens: 5, completion_tokens: 5, ...changed } });
    expect(chat({})).to.deep.equal({ inputTokens: 5, outputTokens: 5 });
    for (const count of [-1, 0.5, "5", null, 1e300, [5]]) {
      expect(chat({ prompt_tokens: count })).to.equal(undefined);
      expect(chat({ completion_tokens: count })).to.equal(undefined);
    }
    expect(chat({ prompt_tokens_details: { cached_tokens: 6 } })).to.equal(undefined);
    expect(chat({ prompt_tokens_details: { cached_tokens: -5 } })).to.equal(undefined);
  });
});
