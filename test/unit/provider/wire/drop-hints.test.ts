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

describe("dropHints(from, body, names)", () => {
  it("leaves a hint behind wherever it may stand, and what tools are given as it is", () => {
    const text = JSON.stringify(dropHints("messages", asked, new Set(["cache_control"])));
    expect(text.match(/cache_control/g)).to.have.length(3);
    expect(text).to.include('"input":{"cache_control":"kept"}').and.include('"thinking"');
  });

  it("is the very request where nothing is named", () => {
    expect(dropHints("messages", asked, new Set())).to.equal(asked);
  });

  it("takes what is no list and no object as it comes", () => {
    const odd = { messages: "x", system: "cache_control", tools: [null, 1], metadata: null };
    expect(dropHints("messages", odd, new Set(["cache_control"]))).to.deep.equal(odd);
    expect(dropHints("messages", { ...odd, output_config: 1 }, new Set(["output_config.effort"]))).to.deep.equal({
      ...odd,
      output_config: 1,
    });
  });

  it("reports each hint where it was, and none that is not there", () => {
    const told: string[] = [];
    dropHints("messages", asked, new Set(["cache_control", "thinking", "store"]), (hint) => told.push(hint));
    expect(told.toSorted()).to.deep.equal([...Array(6).fill("cache_control"), "thinking"]);
  });

  it("leaves a block whose content has the name of a hint, and drops an error's mark of a tool's result", () => {
    const thought = { type: "thinking", thinking: "hm", signature: "" };
    const result = { type: "tool_result", tool_use_id: "c", content: "no such file", is_error: true };
    const messages = [
      { role: "assistant", content: [thought] },
      { role: "user", content: [result] },
    ];
    const { is_error: _, ...rest } = result;
    expect(dropHints("messages", { messages, thinking: {} }, new Set(["thinking", "is_error"]))).to.deep.equal({
      messages: [
        { role: "assistant", content: [thought] },
        { role: "user", content: [rest] },
      ],
    });
  });

  it("drops one member of a member, and all of `metadata` but the user of the messages API", () => {
    const format = { type: "json_schema", schema: {} };
    const body = { output_config: { effort: "high", format }, metadata: { user_id: "u", team: "t" } };
    const names = new Set(["output_config.effort", "metadata"]);
    expect(dropHints("messages", body, names)).to.deep.equal({ output_config: { format }, metadata: { user_id: "u" } });
    expect(dropHints("chat", body, names)).to.deep.equal({ output_config: { format } });
    expect(dropHints("messages", body, new Set(["thinking"]))).to.deep.equal(body);
    const told: string[] = [];
    dropHints("messages", { metadata: { user_id: "u" } }, names, (hint) => told.push(hint));
    expect(told).to.deep.equal([]);
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
