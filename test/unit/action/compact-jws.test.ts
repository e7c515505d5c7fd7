import { expect } from "chai";
import { decodeBase64url, encodeBase64url, splitJws } from "../../../core/action/signing-key.ts";

const signature = Buffer.alloc(64, 255).toString("base64url");
const token = `aGVhZA.cGF5.${signature}`;

describe("splitJws(token, longest)", () => {
  it("gives the parts as they came, and what is signed", () => {
    const { signature: bytes, ...parts } = splitJws(token, token.length) ?? {};
    expect(parts).to.deep.equal({ header: "aGVhZA", payload: "cGF5", signed: "aGVhZA.cGF5" });
    expect(bytes?.equals(Buffer.alloc(64, 255))).to.equal(true);
  });

  for (const [what, text] of [
    ["one character too many", `${token}A`],
    ["two parts", "aGVhZA.cGF5"],
    ["four parts", `aGVhZA.cGF5.${signature}.`],
    ["a shorter signature", `aGVhZA.cGF5.${Buffer.alloc(63).toString("base64url")}`],
    ["a signature with bits that nobody reads", `aGVhZA.cGF5.${signature.slice(0, -1)}x`],
    ["a signature in base64", `aGVhZA.cGF5.${Buffer.alloc(64, 255).toString("base64")}`],
    ["nothing", ""],
  ] as const) {
    it(`takes no ${what}`, () => {
      expect(splitJws(text, token.length)).to.equal(undefined);
    });
  }
});

describe("decodeBase64url(text)", () => {
  it("reads what was encoded, in that one spelling", () => {
    expect(decodeBase64url(encodeBase64url("héllo"))?.toString()).to.equal("héllo");
    for (const text of ["aGk=", "aG k", "aGl", "a+/b"]) expect(decodeBase64url(text), text).to.equal(undefined);
  });
});
