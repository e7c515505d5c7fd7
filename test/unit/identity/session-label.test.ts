import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import { sessionLabel } from "../../../core/identity/key-ring.ts";

describe("sessionLabel(rawHeaders)", () => {
  it("reads one label of 1 to 128 visible ASCII characters", () => {
    expect(sessionLabel(["X-Gateway-Session-ID", "a"])).to.equal("a");
    expect(sessionLabel(["x-gateway-session-id", `!~${"x".repeat(126)}`])).to.equal(`!~${"x".repeat(126)}`);
  });

  it("is undefined where there is none", () => {
    expect(sessionLabel(["Mcp-Session-Id", "a"])).to.equal(undefined);
  });

  it("throws DUPLICATE_HEADER for two, even equal ones", () => {
    expect(() => sessionLabel(["X-Gateway-Session-ID", "a", "X-GATEWAY-SESSION-ID", "a"]))
      .to.throw(GatewayError, "duplicate header: expected `x-gateway-session-id` once, got it again")
      .with.property("code", "DUPLICATE_HEADER");
  });

  for (const value of ["", " ", "a b", "a, b", "a\tb", "a\0", "a\u007f", "a\u0080", "é", "x".repeat(129)]) {
    it(`throws INVALID_HEADER for ${JSON.stringify(value.slice(0, 12))} of ${value.length} characters`, () => {
      const text = `invalid header: expected 1 to 128 visible ASCII characters in \`x-gateway-session-id\`, got ${value.length} characters`;
      expect(() => sessionLabel(["X-Gateway-Session-ID", value]))
        .to.throw(GatewayError)
        .that.includes({ code: "INVALID_HEADER", message: text });
    });
  }
});
