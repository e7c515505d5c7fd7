import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";

describe("GatewayError.loggedDetail", () => {
  for (const [what, detail, logged] of [
    ["quoted input", "duplicate key `secret` at offset 12", "duplicate key `...` at offset 12"],
    ["input that holds the quotation mark itself", "expected `a`, got `x`secret`y`", "expected `...`"],
    ["input of several lines", "`a\nsecret\nb`", "`...`"],
    ["nothing that is quoted", "expected at most 64 levels", "expected at most 64 levels"],
  ] as const) {
    it(`leaves out ${what}`, () => {
      expect(new GatewayError("INVALID_PARAMS", detail).loggedDetail).to.equal(logged);
    });
  }

  it("is whole where only the log hears of the fault", () => {
    const detail = "`/var/lib/gateway/state` is damaged";
    expect(new GatewayError("STATE_UNUSABLE", detail).loggedDetail).to.equal(detail);
  });

  it("is nothing where there is no detail", () => {
    expect(new GatewayError("INTERNAL").loggedDetail).to.equal(undefined);
  });
});
