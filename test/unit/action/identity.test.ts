import { expect } from "chai";
import { uuidV7 } from "../../../core/action/id.ts";
import { principalId, sessionScope } from "../../../core/action/principal.ts";

describe("principalId(tenant, keyHash)", () => {
  it("is pinned: changing it would orphan every principal ever recorded [R2.1-8]", () => {
    expect(principalId("acme", "sha256:00")).to.equal(
      "principal-v1-6de0c8b0d54578691a54c60239b4bc127822fdd56f6db9bc09ddc5e13832d268",
    );
  });

  it("differs by tenant and by key, and text cannot slide between them", () => {
    expect(principalId("a", "bc")).not.to.equal(principalId("ab", "c"));
    expect(principalId("a", "b")).not.to.equal(principalId("a", "c"));
  });
});

describe('sessionScope("http", tenant, principal, label)', () => {
  it("gives one scope a label, and one for no label", () => {
    const unlabelled = sessionScope("http", "t", "p", undefined);
    expect(unlabelled).to.deep.equal(sessionScope("http", "t", "p", undefined));
    expect(unlabelled.id).not.to.equal(sessionScope("http", "t", "p", "a").id);
    expect(sessionScope("http", "t", "p", "null").id).not.to.equal(unlabelled.id);
    expect(sessionScope("http", "t", "p", "a").id).not.to.equal(sessionScope("http", "t2", "p", "a").id);
  });
});

describe('sessionScope("sse", tenant, principal, connectionId)', () => {
  it("is pinned, for it stands in evidence", () => {
    expect(sessionScope("sse", "acme", "p", "c")).to.deep.equal({
      id: "session-v1-69f56dc993d2025b0ebe34620ccf38a26d6a9489512f815decc5b7853fce2bd3",
      transport: "sse",
    });
  });

  it("gives each connection a scope of its own, and never that of an HTTP session", () => {
    const ids = [
      sessionScope("sse", "t", "p", "a"),
      sessionScope("sse", "t", "p", "b"),
      sessionScope("sse", "t", "q", "a"),
      sessionScope("sse", "u", "p", "a"),
    ];
    const all = [...ids, sessionScope("http", "t", "p", "a"), sessionScope("http", "t", "p", undefined)].map(
      ({ id }) => id,
    );
    expect(new Set(all).size).to.equal(all.length);
  });
});

describe("uuidV7(timeMs, random)", () => {
  it("carries the time in order and the version and variant bits", () => {
    const random = new Uint8Array(10).fill(0xff);
    expect(uuidV7(0x0189_0000_0000, random)).to.equal("01890000-0000-7fff-bfff-ffffffffffff");
    expect(uuidV7(1, random) < uuidV7(2, random)).to.equal(true);
  });

  it("refuses too little randomness", () => {
    expect(() => uuidV7(0, new Uint8Array(9))).to.throw(TypeError, "expected 10 random bytes, got 9");
  });
});
