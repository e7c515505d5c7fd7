import { expect } from "chai";
import { SigningKey } from "../../../core/action/signing-key.ts";
import { headerOf, maxToken, readToken, type TicketClaims, writeToken } from "../../../core/ticket/claims.ts";
import { ticketClaims } from "../../support/ticket-claims.ts";

const key = SigningKey.fromSeed(Buffer.alloc(32, 1));
const decoy = SigningKey.fromSeed(Buffer.alloc(32, 2)).public;
const header = headerOf(key.id);

const claims = ticketClaims(1_000, 1_300);

function read(token: string): TicketClaims | undefined {
  return readToken(token, (given) => (given === header ? { key: key.public, owner: "acme" } : undefined), decoy)
    ?.claims;
}

/** Signed as it should be, whatever it says. */
function signed(payload: string): string {
  const text = `${header}.${Buffer.from(payload).toString("base64url")}`;
  return `${text}.${key.sign(text).toString("base64url")}`;
}

describe("readToken(token)", () => {
  const token = writeToken(claims, key);

  it("reads back what was written, under a header that is the same byte for byte", () => {
    expect(read(token)).to.deep.equal(claims);
    expect(Buffer.from(header, "base64url").toString()).to.equal(
      `{"alg":"EdDSA","typ":"gateway-ticket+jwt","kid":"${key.id}"}`,
    );
  });

  it("reads nothing where any character is another one [S43]", () => {
    const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=";
    for (let at = 0; at < token.length; at++) {
      const value = letters.indexOf(token.charAt(at));
      // The neighbour differs in the lowest bit: at the end of a part, in one that base64 leaves unused.
      for (const other of [letters.charAt(value ^ 1), "=", ".", "A", "_"]) {
        const changed = token.slice(0, at) + other + token.slice(at + 1);
        if (changed !== token) expect(read(changed), `${at}: ${other}`).to.equal(undefined);
      }
    }
  });

  it("reads nothing that is shorter or longer", () => {
    for (let length = 0; length < token.length; length++) expect(read(token.slice(0, length))).to.equal(undefined);
    for (const more of ["A", ".", "=", " ", "\n", ".A"]) expect(read(token + more)).to.equal(undefined);
  });

  it("reads nothing that another key signed, the one that stands in for unknown ones included", () => {
    const stranger = SigningKey.fromSeed(Buffer.alloc(32, 2));
    expect(read(writeToken(claims, stranger))).to.equal(undefined);
    const text = token.slice(0, token.lastIndexOf("."));
    expect(read(`${text}.${stranger.sign(text).toString("base64url")}`)).to.equal(undefined);
  });

  const wrong: Readonly<Record<string, unknown>> = {
    "no object": [claims],
    "one more member": { ...claims, role: "admin" },
    "one member less": { ...claims, nonce: undefined },
    "a short nonce": { ...claims, nonce: "AAAA" },
    "no uses": { ...claims, max_uses: 0 },
    "too many uses": { ...claims, max_uses: 1_001 },
    "uses that are a text": { ...claims, max_uses: "3" },
    "no tools": { ...claims, tools: [] },
    "a tool that is a number": { ...claims, tools: [1] },
    "an unknown capability": { ...claims, capabilities: ["fly"] },
    "another kind of principal": { ...claims, sub: "agent" },
    "a time that is a fraction": { ...claims, exp: 1_300.5 },
  };
  for (const [what, payload] of Object.entries(wrong)) {
    it(`reads nothing from ${what}, signed or not`, () => {
      expect(read(signed(JSON.stringify(payload)))).to.equal(undefined);
    });
  }

  it("reads nothing that two readers could read differently", () => {
    const text = JSON.stringify(claims);
    expect(read(signed(text))).to.deep.equal(claims);
    expect(read(signed(text.replace('"max_uses":3', '"max_uses":3,"max_uses":9')))).to.equal(undefined);
    expect(read(signed(`\ufeff${text}`))).to.equal(undefined);
    expect(read(signed("{"))).to.equal(undefined);
  });

  it("writes none that it would not read", () => {
    const names = Array.from({ length: 16 }, () => "\u20ac".repeat(128));
    expect(() => writeToken({ ...claims, tools: names, targets: names }, key)).to.throw(/at most 8192 characters/);
    expect(read(`${token}${"A".repeat(maxToken)}`)).to.equal(undefined);
  });
});
