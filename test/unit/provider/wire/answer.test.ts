import { expect } from "chai";
import { GatewayError } from "../../../../core/kernel/error.ts";
import { readAnswer } from "../../../../core/provider/wire/answer.ts";

function fault(text: string): string {
  try {
    readAnswer(Buffer.from(text));
  } catch (error) {
    if (error instanceof GatewayError) return `${error.code} ${error.detail}`;
    throw error;
  }
  return "read";
}

describe("readAnswer(bytes)", () => {
  it("reads an object as any client would", () => {
    expect(readAnswer(Buffer.from('{"created":1e20,"text":"a\\u0000b"}'))).to.deep.equal({
      created: 1e20,
      text: "a\0b",
    });
  });

  it("refuses a million levels in under 10 ms [S17]", () => {
    const deep = `{"a":${"[".repeat(1_000_000)}`;
    const start = performance.now();
    expect(fault(deep)).to.contain("PROVIDER_INVALID JSON exceeds a bound: expected at most 64 levels");
    expect(performance.now() - start).to.be.below(10);
  });

  it("refuses what two readers could read differently, and what is no object", () => {
    expect(fault('{"choices":[],"choices":[1]}')).to.contain("PROVIDER_INVALID malformed JSON: duplicate key");
    expect(fault("<html>")).to.contain("PROVIDER_INVALID malformed JSON");
    expect(fault("[]")).to.equal("PROVIDER_INVALID expected a JSON object");
  });
});
