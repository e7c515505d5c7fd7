import { expect } from "chai";
import { suggest } from "../../../core/action/suggestion.ts";
import { growthOf, maxGrowth } from "../../support/duration.ts";

const known = ["gateway_port", "admin_port", "host", "keys"];

describe("suggest(word, known)", () => {
  const table: [string, string | undefined][] = [
    ["gatewayport", "gateway_port"],
    ["gateway_prot", "gateway_port"],
    ["adminport", "admin_port"],
    ["hots", "host"],
    ["key", "keys"],
    ["ke", undefined],
    ["colour", undefined],
    ["", undefined],
  ];
  for (const [word, meant] of table) {
    it(`takes ${JSON.stringify(word.slice(0, 20))} for ${meant ?? "nothing known"}`, () => {
      expect(suggest(word, known)).to.equal(meant);
    });
  }

  it("does not compare what cannot be near", async () => {
    expect(
      await growthOf(
        (length) => "x".repeat(length),
        (word) => suggest(word, known),
        1_000_000,
      ),
    ).to.be.below(maxGrowth);
  });
});
