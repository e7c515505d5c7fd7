import { expect } from "chai";
import fc from "fast-check";
import type { Json } from "../../../../core/action/json.ts";
import { toolCallsOf } from "../../../../core/provider/wire/tool-call.ts";

const chat = (message: Json): Json => ({ choices: [{ index: 0, message }] });
const named = { name: "run", arguments: '{"a":1}' };

describe("toolCallsOf(tool, answer)", () => {
  for (const [title, tool, answer, expected] of [
    ["the chat API", "chat.completions", chat({ tool_calls: [{ type: "function", function: named }] }), ['{"a":1}']],
    ["its former versions", "chat.completions", chat({ function_call: named }), ['{"a":1}']],
    [
      "its custom tools",
      "chat.completions",
      chat({ tool_calls: [{ type: "custom", custom: { name: "run", input: "ls" } }] }),
      [{ input: "ls" }],
    ],
    ["the messages API", "messages", { content: [{ type: "tool_use", name: "run", input: { a: 1 } }] }, [{ a: 1 }]],
    [
      "the messages API, unfinished",
      "messages",
      { content: [{ type: "tool_use", name: "run", input: '{"a"' }] },
      [null],
    ],
    ["the responses API", "responses", { output: [{ type: "function_call", ...named }] }, ['{"a":1}']],
    [
      "its custom tools",
      "responses",
      { output: [{ type: "custom_tool_call", name: "run", input: "x" }] },
      [{ input: "x" }],
    ],
  ] as const) {
    it(`reads the calls of ${title}`, () => {
      const calls = toolCallsOf(tool, answer as unknown as Json);
      expect(calls).to.deep.equal(expected.map((args) => ({ tool: "run", arguments: args })));
    });
  }

  it("reads the tools that the responses API defines under the names of their tools", () => {
    const output = [
      { type: "local_shell_call", action: { command: ["ls"] } },
      { type: "shell_call", action: { commands: ["ls"] } },
      { type: "apply_patch_call", operation: { type: "delete_file", path: "a" } },
      { type: "web_search_call", action: { query: "x" } },
      { type: "message", content: [] },
    ];
    expect(toolCallsOf("responses", { output })).to.deep.equal([
      { tool: "local_shell", arguments: { command: ["ls"] } },
      { tool: "shell", arguments: { commands: ["ls"] } },
      { tool: "apply_patch", arguments: { type: "delete_file", path: "a" } },
    ]);
  });

  it("has null for a name that is missing, and reads nothing of other actions", () => {
    const answer = chat({ tool_calls: [{ id: "c", type: "custom", function: { name: null, arguments: "" } }] });
    expect(toolCallsOf("chat.completions", answer)).to.deep.equal([{ tool: null, arguments: "" }]);
    expect(toolCallsOf("embeddings", answer)).to.deep.equal([]);
    expect(toolCallsOf("chat.completions", undefined)).to.deep.equal([]);
  });

  it("throws for no answer", () => {
    const names = fc.constantFrom("choices", "message", "tool_calls", "content", "output", "type", "function", "input");
    const value = fc.letrec<{ json: Json }>((tie) => ({
      json: fc.oneof(
        { maxDepth: 6 },
        fc.constantFrom(null, 1, "", "tool_use", "function_call"),
        fc.array(tie("json"), { maxLength: 3 }),
        fc.dictionary(names, tie("json"), { maxKeys: 4 }),
      ),
    })).json;
    fc.assert(
      fc.property(fc.constantFrom("chat.completions", "messages", "responses"), value, (tool, answer) => {
        for (const call of toolCallsOf(tool, answer)) expect(call).to.have.all.keys("tool", "arguments");
      }),
    );
  });
});
