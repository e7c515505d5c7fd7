import { expect } from "chai";
import { scripts } from "../../fixture/model-provider.ts";
import { askModel } from "./ask.ts";
import { type ModelWorld, openModelWorld } from "./world.ts";

const tools = [{ name: "weather", input_schema: { type: "object" } }];
const called = { text: "One moment.", calls: [{ name: "weather", arguments: { city: "Zürich" } }] };

describe("tools of the messages API", () => {
  for (const [setting, passes] of [
    ["tool_passthrough: false", false],
    ["tool_passthrough: true", true],
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
    const world = await openModelWorld({ settings: "tool_passthrough: false" });
    try {
      world.provider.script = scripts.answers(called);
      const told = await askModel(world, { body: { tools: [{ type: "function", function: { name: "weather" } }] } });
      expect(told.status).to.equal(200);
      expect(told.text).to.include("weather");
    } finally {
      await world.stop();
    }
  });
});
