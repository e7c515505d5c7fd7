import { expect } from "chai";
import { dropHints, translateRequest } from "../../../../core/provider/wire/translate.ts";

const hint = { cache_control: { type: "ephemeral" } };
const asked = {
  model: "m",
  max_tokens: 10,
  thinking: { type: "enabled", budget_tokens: 5 },
  system: [{ type: "text", text: "Be brief.", ...hint }],
  tools: [{ name: "t", input_schema: { type: "object", properties: { cache_control: { type: "string" } } }, ...hint }],
  messages: [
    { role: "user", content: [{ type: "text", text: "cache_control", ...hint }] },
    {
      role: "assistant",
      content: [{ type: "tool_use", id: "c", name: "t", input: { cache_control: "kept" }, ...hint }],
    },
    {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: "c", content: [{ type: "text", text: "ok", ...hint }], ...hint }],
    },
  ],
};

describe("dropHints(body, names)", () => {
  it("leaves a hint behind wherever it may stand, and what tools are given as it is", () => {
    const text = JSON.stringify(dropHints(asked, new Set(["cache_control"])));
    expect(text.match(/cache_control/g)).to.have.length(3);
    expect(text).to.include('"input":{"cache_control":"kept"}').and.include('"thinking"');
  });

  it("is the very request where nothing is named", () => {
    expect(dropHints(asked, new Set())).to.equal(asked);
  });

  it("takes what is no list and no object as it comes", () => {
    const odd = { messages: "x", system: "cache_control", tools: [null, 1], metadata: null };
    expect(dropHints(odd, new Set(["cache_control"]))).to.deep.equal(odd);
  });
});

describe("translateRequest(from, to, body, hints)", () => {
  it("refuses a hint that is not named, and takes the request without those that are", () => {
    expect(() => translateRequest("messages", "chat", asked)).to.throw("no equivalent");
    expect(() => translateRequest("messages", "chat", asked, new Set(["cache_control"]))).to.throw("thinking");
    const said = translateRequest("messages", "chat", asked, new Set(["cache_control", "thinking"]));
    expect(JSON.stringify(said)).to.include("Be brief.").and.include("kept");
  });

  it("leaves nothing behind between two that speak the same API", () => {
    expect(translateRequest("messages", "messages", asked, new Set(["cache_control"]))).to.equal(asked);
  });
});
