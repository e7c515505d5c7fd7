import { expect } from "chai";
import { scripts } from "../../fixture/model-provider.ts";
import { askModel } from "./ask.ts";
import { errorOf } from "./error-shape.ts";
import { type ModelWorld, openModelWorld } from "./world.ts";

/** Errors as providers document them, and what of them is beyond the API. */
const chatErrors = {
  groq: {
    body: { message: "Failed to call a function.", type: "invalid_request_error", code: "tool_use_failed" },
    more: { failed_generation: '<function=look>{"up": "\u00e4"}' },
  },
  openrouter: {
    body: { message: "Your chosen model requires moderation", code: 403 },
    more: { metadata: { provider_name: "SomeProvider", reasons: ["other"], flagged_input: "x" } },
  },
} as const;

describe("an error of a provider", () => {
  let world: ModelWorld;
  before(async () => {
    world = await openModelWorld();
  });
  after(() => world.stop());

  for (const [name, { body, more }] of Object.entries(chatErrors)) {
    it(`reaches a client of the same API with all its members: ${name}`, async () => {
      world.provider.next(scripts.says(400, { error: { ...body, ...more } }));
      const told = await askModel(world);
      expect(told.status).to.equal(400);
      expect(errorOf("chat", told)).to.deep.include({ ...body, ...more });
    });

    it(`reaches a client of the other API without what that one has no place for: ${name}`, async () => {
      world.provider.next(scripts.says(400, { error: { ...body, ...more } }));
      const told = await askModel(world, { api: "messages", model: "chat-model" });
      expect(errorOf("messages", told)).to.deep.equal({ type: "invalid_request_error", message: body.message });
    });
  }

  it("names the provider's request id beside the gateway's, from its header or its body", async () => {
    const error = { type: "invalid_request_error", message: "no" };
    world.provider.next(scripts.says(400, { error }, { "x-request-id": "req_of_chat-1" }));
    expect(errorOf("chat", await askModel(world))).to.include({ provider_request_id: "req_of_chat-1" });
    world.provider.next(scripts.says(400, { type: "error", error, request_id: "req_of_messages" }));
    expect(errorOf("messages", await askModel(world, { api: "messages" }))).to.include({
      provider_request_id: "req_of_messages",
    });
    world.provider.next(scripts.says(400, { error }, { "x-request-id": "<script> and more" }));
    expect(errorOf("chat", await askModel(world))).to.not.have.property("provider_request_id");
  });
});
