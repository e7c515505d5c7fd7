import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import type { Principal } from "../../../core/action/principal.ts";
import { AccessRule, TokenRule } from "../../../core/http/access.ts";
import { generateKey, KeyRing } from "../../../core/identity/key-ring.ts";

const { key, keyHash } = generateKey(randomBytes);
const ring = new KeyRing([{ id: "agent", tenant: "acme", role: "viewer", keyHash }]);
const subject: Principal = Object.freeze({ id: "principal-v1-x", tenant: "acme", role: "viewer", keyId: "oauth:x" });

describe("TokenRule", () => {
  let asked: string[];
  let rule: TokenRule;

  beforeEach(() => {
    asked = [];
    rule = new TokenRule(ring, new AccessRule(ring, null), async (token) => {
      asked.push(token);
      return subject;
    });
  });

  it("identifies the holder of a key at once, in either header, and asks about no token", () => {
    for (const headers of [
      ["x-api-key", key],
      ["authorization", `Bearer ${key}`],
      ["authorization", `Bearer ${key}`, "x-api-key", key],
    ]) {
      expect(rule.identify("caller", headers)).to.include({ keyId: "agent" });
    }
    expect(asked).to.deep.equal([]);
  });

  it("asks about a bearer that is no key", async () => {
    expect(await rule.identify("key", ["authorization", "Bearer a.b.c"])).to.equal(subject);
    expect(asked).to.deep.equal(["a.b.c"]);
  });

  for (const [what, code, headers] of [
    ["nothing", "KEY_MISSING", []],
    ["a token in `x-api-key`", "KEY_UNKNOWN", ["x-api-key", "a.b.c"]],
    ["another scheme", "KEY_UNKNOWN", ["authorization", "Basic a.b.c"]],
    ["a token beside a key", "INVALID_HEADER", ["authorization", "Bearer a.b.c", "x-api-key", key]],
    ["two tokens", "DUPLICATE_HEADER", ["authorization", "Bearer a.b.c", "authorization", "Bearer a.b.c"]],
    ["a list of tokens", "KEY_UNKNOWN", ["authorization", "Bearer a.b.c, a.b.c"]],
  ] as const) {
    it(`throws ${code} for ${what}, without asking`, () => {
      expect(() => rule.identify("caller", headers))
        .to.throw(GatewayError)
        .with.property("code", code);
      expect(asked).to.deep.equal([]);
    });
  }
});
