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
    expect(translateError("messages", "messages", 529, messages)).to.deep.equal({ ...messages, request_id: null });
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

  it("passes on no more than 2,000 characters, and no member that it does not know", () => {
    const body = { error: { message: "x".repeat(10_000), details: { key: "y" } } };
    const said = JSON.stringify(translateError("chat", "chat", 400, body));
    expect(said).to.have.length.below(2_200).and.not.contain("details");
  });
});
