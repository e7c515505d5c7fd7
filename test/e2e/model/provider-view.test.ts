import { expect } from "chai";
import { scripts } from "../../fixture/model-provider.ts";
import { type ModelWorld, openModelWorld } from "./world.ts";

describe("GET /admin/v1/providers", () => {
  let world: ModelWorld;
  before(async () => {
    world = await openModelWorld({ provider: "breaker: { failures: 1, rest_ms: 60000 }\n    max_retries: 0" });
  });
  after(() => world.stop());

  it("tells viewers which providers there are, how they fare, and neither address nor key [R4.2-4]", async () => {
    const read = async (): Promise<{
      readonly text: string;
      readonly items: readonly Readonly<Record<string, unknown>>[];
    }> => {
      const headers = { "x-api-key": world.keys.agent };
      const response = await fetch(`${world.gateway.adminUrl}/admin/v1/providers`, { headers });
      expect(response.status).to.equal(200);
      const text = await response.text();
      return { text, items: (JSON.parse(text) as { items: Readonly<Record<string, unknown>>[] }).items };
    };
    const before = await read();
    expect(before.items).to.have.length(4);
    expect(before.items[0]).to.deep.equal({
      name: "open",
      type: "openai",
      enabled: true,
      models: ["chat-model", "shared-model"],
      routes: ["chat-model"],
      breaker: "closed",
      failures: 0,
      rests_for_ms: 0,
      requests_in_flight: 0,
      last_fault: null,
    });
    world.provider.script = scripts.says(500);
    await fetch(`${world.gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "x-api-key": world.keys.agent, "content-type": "application/json" },
      body: JSON.stringify({ model: "chat-model", messages: [{ role: "user", content: "hello" }] }),
    });
    const { text, items } = await read();
    expect(items[0]).to.include({ breaker: "open", failures: 1, last_fault: "PROVIDER_UNAVAILABLE" });
    expect(items[0]?.rests_for_ms).to.be.above(0);
    expect(text).to.not.include(world.providerKey).and.not.include("127.0.0.1");
  });
});
