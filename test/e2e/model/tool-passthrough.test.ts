import { expect } from "chai";
import type { ModelApi } from "../../../core/action/model-api.ts";
import { scripts } from "../../fixture/model-provider.ts";
import { answerEvents, answerOf } from "../../fixture/model-reply.ts";
import { askModel } from "./ask.ts";
import { type ModelWorld, openModelWorld } from "./world.ts";

const tools = [{ name: "weather", input_schema: { type: "object" } }];
const called = { text: "One moment.", calls: [{ name: "weather", arguments: { city: "Zürich" } }] };

describe("tools of the messages API", () => {
  for (const [setting, passes] of [
    ["tool_passthrough: off", false],
    ["tool_passthrough: client", true],
    ["tool_passthrough: all", true],
    ["holdback_bytes: 256", false],
  ] as const) {
    describe(`with \`${setting}\``, () => {
      let world: ModelWorld;
      before(async () => {
        world = await openModelWorld({ settings: setting });
        world.provider.script = scripts.answers(called);
      });
      after(() => world.stop());

      const blocks = { role: "assistant", content: [{ type: "tool_use", id: "t", name: "weather", input: {} }] };
      const results = { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: "sun" }] };
      const asked: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
        "offers tools": { tools },
        "chooses among tools": { tools, tool_choice: { type: "auto" } },
        "tells of a tool's use": { messages: [{ role: "user", content: "x" }, blocks, results] },
      };
      for (const [title, body] of Object.entries(asked)) {
        it(`${passes ? "passes" : "refuses"} a request that ${title} [R4.1-14]`, async () => {
          const before = world.provider.calls.length;
          const told = await askModel(world, { api: "messages", body });
          expect(told.status).to.equal(passes ? 200 : 400);
          expect(world.provider.calls.length - before).to.equal(passes ? 1 : 0);
          if (passes) return;
          expect(told.json().error).to.include({ type: "invalid_request_error", code: "tools_disabled" });
          expect(told.text).to.include("tool_passthrough");
        });
      }

      for (const model of ["messages-model", "chat-model"]) {
        for (const stream of [false, true]) {
          const how = `${model}${stream ? ", streamed" : ""}`;
          it(`${passes ? "hands on" : "does not hand on"} a tool that a model asks for: ${how} [S62]`, async () => {
            const told = await askModel(world, { api: "messages", model, stream });
            if (passes) expect(told.text).to.include("weather").and.include("Zürich");
            else {
              expect(told.text).to.include("tools_disabled");
              expect(told.text).to.not.match(/weather|rich/);
            }
            const last = (await world.records()).at(-1);
            expect(last).to.include({ kind: "outcome", effect: stream && !passes ? "unknown" : "success" });
          });
        }
      }
    });
  }

  it("are the chat API's own matter", async () => {
    const world = await openModelWorld({ settings: "tool_passthrough: off" });
    try {
      world.provider.script = scripts.answers(called);
      const told = await askModel(world, { body: { tools: [{ type: "function", function: { name: "weather" } }] } });
      expect(told.status).to.equal(200);
      expect(told.text).to.include("weather");
    } finally {
      await world.stop();
    }
  });

  /** Requests that have a provider act out of the gateway's sight, by the name that would have to be listed. */
  const acting: readonly (readonly [ModelApi, string, Readonly<Record<string, unknown>>])[] = [
    ["messages", "web_search_20250305", { tools: [...tools, { type: "web_search_20250305", name: "web_search" }] }],
    ["messages", "code_execution_20250825", { tools: [{ type: "code_execution_20250825", name: "code_execution" }] }],
    ["messages", "a_type_of_tomorrow", { tools: [{ type: "a_type_of_tomorrow", name: "x" }] }],
    ["messages", "mcp_servers", { mcp_servers: [{ type: "url", url: "https://mcp.example", name: "x" }] }],
    ["messages", "container", { container: { skills: [{ type: "custom", skill_id: "s" }] } }],
    ["chat", "web_search_options", { web_search_options: {} }],
    ["chat", "search_parameters", { search_parameters: { mode: "on" } }],
    ["chat", "plugins", { plugins: [{ id: "web" }] }],
    ["chat", "mcp", { tools: [{ type: "mcp", server_url: "https://mcp.example" }] }],
    ["chat", "google_search", { tools: [{ google_search: {} }] }],
  ];

  for (const passes of ["off", "client", "all"]) {
    describe(`that a provider runs, with \`tool_passthrough: ${passes}\``, () => {
      let world: ModelWorld;
      before(async () => {
        world = await openModelWorld({ settings: `tool_passthrough: ${passes}` });
      });
      after(() => world.stop());

      for (const [api, name, body] of acting) {
        it(`are refused: ${name} of ${api}`, async () => {
          const told = await askModel(world, { api, body });
          expect([told.status, world.provider.calls.length]).to.deep.equal([400, 0]);
          expect(told.json().error).to.include({ code: "tools_disabled" });
          if (api === "chat" || passes !== "off") {
            expect(told.text).to.include(`\`${name}\`, which the provider runs`);
            expect(told.text).to.include("model_gateway.provider_tools");
          }
        });
      }

      it("are not to be hidden in a list that is none", async () => {
        for (const [api, list] of [
          ["chat", { type: "mcp" }],
          ["chat", ["mcp"]],
          ["messages", "web_search_20250305"],
        ] as const) {
          expect((await askModel(world, { api, body: { tools: list } })).status).to.equal(400);
        }
        expect(world.provider.calls.length).to.equal(0);
      });
    });
  }

  for (const [passes, status] of [
    ["client", 400],
    ["all", 200],
  ] as const) {
    it(`that a provider runs and that are listed are ${status === 200 ? "passed" : "refused"} by \`${passes}\``, async () => {
      const listed = acting.map(([, name]) => name).join(", ");
      const world = await openModelWorld({ settings: `tool_passthrough: ${passes}\n  provider_tools: [${listed}]` });
      try {
        for (const [api, name, body] of acting) {
          const before = world.provider.calls.length;
          expect((await askModel(world, { api, body })).status, name).to.equal(status);
          expect(world.provider.calls.length - before, name).to.equal(status === 200 ? 1 : 0);
        }
      } finally {
        await world.stop();
      }
    });
  }

  it("of kinds that the messages API defines and its clients run are passed by `client`", async () => {
    const world = await openModelWorld({ settings: "tool_passthrough: client" });
    try {
      for (const type of ["custom", "bash_20250124", "text_editor_20250728", "computer_20250124", "memory_20250818"]) {
        const told = await askModel(world, { api: "messages", body: { tools: [{ type, name: "x" }] } });
        expect(told.status, type).to.equal(200);
      }
    } finally {
      await world.stop();
    }
  });

  for (const stream of [false, true]) {
    it(`that a provider ran unasked are not handed on by \`client\`${stream ? ", streamed" : ""}`, async () => {
      const world = await openModelWorld({ settings: "tool_passthrough: client" });
      try {
        const ranByProvider = (text: string): string => text.replaceAll('"tool_use"', '"server_tool_use"');
        world.provider.script = stream
          ? scripts.streams(answerEvents("messages", called).map(ranByProvider))
          : scripts.says(200, ranByProvider(JSON.stringify(answerOf("messages", called))));
        const told = await askModel(world, { api: "messages", stream });
        expect(told.text)
          .to.include("tools_disabled")
          .and.not.match(/weather|rich/);
      } finally {
        await world.stop();
      }
    });
  }
});
