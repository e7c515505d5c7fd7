import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import { adaptResult } from "../../../core/upstream/connection-view.ts";

describe("adaptResult(result, from, to, method)", () => {
  it("leaves a result of the same era untouched", () => {
    const result = { resultType: "complete", content: [] };
    expect(adaptResult(result, "modern", "modern", "tools/call")).to.equal(result);
  });

  it("says of a legacy result that it is complete", () => {
    expect(adaptResult({ content: [] }, "legacy", "modern", "tools/call")).to.deep.equal({
      content: [],
      resultType: "complete",
    });
  });

  it("says of a legacy list that it must not be kept", () => {
    expect(adaptResult({ contents: [] }, "legacy", "modern", "resources/read")).to.deep.equal({
      contents: [],
      resultType: "complete",
      ttlMs: 0,
      cacheScope: "private",
    });
  });

  it("lets a legacy upstream pretend nothing", () => {
    const forged = { resultType: "input_required", requestState: "x" };
    expect(adaptResult(forged, "legacy", "modern", "tools/call").resultType).to.equal("complete");
  });

  it("takes away what a legacy client does not know", () => {
    const modern = { resultType: "complete", ttlMs: 1, cacheScope: "public", contents: [] };
    expect(adaptResult(modern, "modern", "legacy", "resources/read")).to.deep.equal({ contents: [] });
  });

  it("keeps a tool's own members of these names", () => {
    const modern = { resultType: "complete", ttlMs: 1, content: [] };
    expect(adaptResult(modern, "modern", "legacy", "tools/call")).to.deep.equal({ ttlMs: 1, content: [] });
  });

  it("refuses a result that asks for input, where the client could not give it", () => {
    const asking = { resultType: "input_required", inputRequests: {} };
    expect(() => adaptResult(asking, "modern", "legacy", "tools/call")).to.throw(
      GatewayError,
      "client capability required: the upstream asks for input, which needs a client of protocol revision 2026-07-28",
    );
  });
});
