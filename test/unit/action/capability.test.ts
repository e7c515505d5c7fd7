import { expect } from "chai";
import { contradictingHint, resolveCapability } from "../../../core/action/capability.ts";

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
  });

  it("is what is configured, whatever annotations say, and whoever trusts them", () => {
    for (const trustAnnotations of [false, true]) {
      for (const annotations of [readOnly, destructive, { destructiveHint: false }]) {
        expect(resolveCapability({ configured: "write", annotations, trustAnnotations })).to.equal("write");
      }
    }
  });

  it("lets trusted annotations decide what is not configured", () => {
    expect(resolveCapability({ annotations: readOnly, trustAnnotations: true })).to.equal("read");
    expect(resolveCapability({ annotations: { destructiveHint: false }, trustAnnotations: true })).to.equal("write");
  });
});

describe("contradictingHint(claims)", () => {
  const hint = (configured: "read" | "write" | "delete" | undefined, annotations: object): string | undefined =>
    contradictingHint({ configured, annotations, trustAnnotations: false });

  it("is what annotations claim beyond the configuration", () => {
    expect(hint("write", destructive)).to.equal("delete");
    expect(hint("read", { destructiveHint: false })).to.equal("write");
  });

  it("is none where they claim as much, less, or nothing, and where nothing is configured", () => {
    expect([
      hint("delete", destructive),
      hint("write", readOnly),
      hint("write", {}),
      hint(undefined, destructive),
    ]).to.deep.equal([undefined, undefined, undefined, undefined]);
  });
});
