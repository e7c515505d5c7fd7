import { expect } from "chai";
import { resolveCapability } from "../../../core/action/capability.ts";

const readOnly = { readOnlyHint: true };
const destructive = { destructiveHint: true };

describe("resolveCapability(claims)", () => {
  it("is `execute` where nobody said anything", () => {
    expect(resolveCapability({ trustAnnotations: false })).to.equal("execute");
    expect(resolveCapability({ trustAnnotations: true })).to.equal("execute");
  });

  it("takes what is configured", () => {
    expect(resolveCapability({ configured: "read", trustAnnotations: false })).to.equal("read");
  });

  it("lets untrusted annotations tighten, never loosen", () => {
    expect(resolveCapability({ annotations: readOnly, trustAnnotations: false })).to.equal("execute");
    expect(resolveCapability({ annotations: destructive, trustAnnotations: false })).to.equal("delete");
    expect(resolveCapability({ configured: "read", annotations: destructive, trustAnnotations: false })).to.equal(
      "delete",
    );
    expect(resolveCapability({ configured: "write", annotations: readOnly, trustAnnotations: true })).to.equal("write");
  });

  it("lets trusted annotations decide what is not configured", () => {
    expect(resolveCapability({ annotations: readOnly, trustAnnotations: true })).to.equal("read");
    expect(resolveCapability({ annotations: { destructiveHint: false }, trustAnnotations: true })).to.equal("write");
  });
});
