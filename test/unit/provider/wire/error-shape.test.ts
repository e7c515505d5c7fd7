import { expect } from "chai";
import { translateError } from "../../../../core/provider/wire/error-shape.ts";

describe("translateError(from, to, status, body)", () => {
  const chat = {
    error: { message: "too long", type: "invalid_request_error", param: "messages", code: "context_length" },
  };
  const messages = { type: "error", error: { type: "overloaded_error", message: "later" }, request_id: "theirs" };

  it("writes an error of either API in either, with the provider's words and its status as a type", () => {
    expect(translateError("chat", "chat", 400, chat)).to.deep.equal(chat);
    expect(translateError("chat", "messages", 400, chat)).to.deep.equal({
      type: "error",
      error: { type: "invalid_request_error", message: "too long" },
      request_id: null,
    });
    expect(translateError("messages", "chat", 529, messages)).to.deep.equal({
      error: { message: "later", type: "overloaded_error", param: null, code: null },
    });
    expect(translateError("messages", "messages", 529, messages)).to.deep.equal({
      ...messages,
      error: { ...messages.error, provider_request_id: "theirs" },
      request_id: null,
    });
  });

  it("says no more than the status of what is no error of that API", () => {
    for (const body of [null, "<html>", [], { error: "no" }, { error: { message: 5, type: {} } }]) {
      expect(translateError("chat", "messages", 503, body)).to.deep.equal({
        type: "error",
        error: { type: "api_error", message: "the provider answered with status 503" },
        request_id: null,
      });
    }
  });

  it("keeps members that the API does not know where the client speaks the provider's, and only there", () => {
    const details = { failed_generation: "<function=x", metadata: { provider_name: "somebody", raw: { code: 7 } } };
    const body = { error: { message: "no", ...details } };
    expect(translateError("chat", "chat", 400, body).error).to.include(details);
    expect(translateError("messages", "messages", 400, body).error).to.include(details);
    expect(JSON.stringify(translateError("chat", "messages", 400, body))).to.not.contain("failed_generation");
  });

  it("passes on no more than 2,000 characters of a message, and no unknown member of an error that is too long", () => {
    const body = { error: { message: "x".repeat(10_000), details: { key: "y" } } };
    const said = JSON.stringify(translateError("chat", "chat", 400, body));
    expect(said).to.have.length.below(2_300).and.contain("details");
    const long = { error: { message: "x", details: { key: "y".repeat(20_000) } } };
    expect(JSON.stringify(translateError("chat", "chat", 400, long))).to.have.length.below(200);
  });
});
