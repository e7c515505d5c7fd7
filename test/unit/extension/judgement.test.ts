import { expect } from "chai";
import {
  type CheckedSignature,
  type Finding,
  judgeTrust,
  type SeenSequence,
} from "../../../core/extension/judgement.ts";
import { Refusal } from "../../../core/extension/refusal.ts";
import type { TrustedKey, TrustPolicy } from "../../../core/kernel/trust-policy.ts";

const now = "2026-06-01T00:00:00.000Z";
const digest = `sha256:${"d".repeat(64)}`;

function key(name: string, more: Partial<TrustedKey> = {}): TrustedKey {
  return { name, keyId: `id-${name}`, spki: "", notBefore: null, notAfter: null, tightenOnly: false, ...more };
}

function policy(more: Partial<TrustPolicy> = {}): TrustPolicy {
  const anyOf = { minimum: 2, signers: [key("a"), key("b"), key("c")] };
  return { allOf: [], anyOf, revoked: { digests: [], keys: [] }, ...more };
}

function signed(...names: readonly string[]): readonly CheckedSignature[] {
  return names.map((name) => ({ keyId: `id-${name}`, valid: true }));
}

function finding(signatures: readonly CheckedSignature[], statement: Partial<Finding["statement"]> = {}): Finding {
  const whole: Finding["statement"] = {
    kind: "pack",
    name: "p",
    version: "1.0.0",
    sequence: 3,
    subjects: new Map(),
    issuedAt: "2026-01-01T00:00:00.000Z",
    expiresAt: null,
    ...statement,
  };
  return { statement: whole, digests: new Set([digest]), digest, signatures };
}

function check(found: Finding, by: TrustPolicy = policy(), seen?: SeenSequence): string {
  try {
    return judgeTrust(found, by, now, seen).signers.join("+");
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return error.check;
  }
}

describe("judgeTrust(finding, policy, now, seen)", () => {
  it("names the signers that counted, each once, in order", () => {
    expect(check(finding(signed("c", "a")))).to.equal("a+c");
    expect(check(finding(signed("b", "a", "b", "stranger")))).to.equal("a+b");
    const both = policy({ allOf: [key("a"), key("z")] });
    expect(check(finding(signed("z", "a", "c")), both)).to.equal("a+c+z");
  });

  it("lets allow what one signer vouches for that may loosen", () => {
    const anyOf = { minimum: 1, signers: [key("a", { tightenOnly: true }), key("b", { tightenOnly: true }), key("c")] };
    const tightens = (...names: readonly string[]): boolean =>
      judgeTrust(finding(signed(...names)), policy({ anyOf }), now, undefined).tightenOnly;
    expect(tightens("a", "b")).to.equal(true);
    expect(tightens("a", "c")).to.equal(false);
  });

  it("asks for both lists where both are given", () => {
    const both = policy({ allOf: [key("z")] });
    expect(check(finding(signed("a", "b")), both)).to.equal("signers_missing");
    expect(check(finding(signed("z", "a")), both)).to.equal("signers_missing");
  });

  it("counts a signer once towards a threshold", () => {
    expect(check(finding(signed("a", "a", "a")))).to.equal("signers_missing");
    expect(check(finding([]))).to.equal("signers_missing");
  });

  it("refuses one bad signature of a known key beside enough good ones", () => {
    const bad = { keyId: "id-c", valid: false };
    expect(check(finding([...signed("a", "b"), bad]))).to.equal("signature_invalid");
    expect(check(finding([...signed("a", "b"), { keyId: "stranger", valid: null }]))).to.equal("a+b");
  });

  it("counts a key from its first instant to before its last", () => {
    const between = (notBefore: string | null, notAfter: string | null): string =>
      check(finding(signed("a")), policy({ allOf: [key("a", { notBefore, notAfter })], anyOf: null }));
    expect(between(now, null)).to.equal("a");
    expect(between("2026-06-01T00:00:00.001Z", null)).to.equal("key_not_yet_valid");
    expect(between(null, "2026-06-01T00:00:00.001Z")).to.equal("a");
    expect(between(null, now)).to.equal("key_expired");
  });

  it("does without a signer whose key counts no longer, where there are enough others", () => {
    const revoked = { digests: [], keys: ["id-a"] };
    expect(check(finding(signed("a", "b", "c")), policy({ revoked }))).to.equal("b+c");
    expect(check(finding(signed("a", "b")), policy({ revoked }))).to.equal("key_revoked");
  });

  it("holds a statement to its time, the last instant excluded", () => {
    expect(check(finding(signed("a", "b"), { issuedAt: now }))).to.equal("a+b");
    expect(check(finding(signed("a", "b"), { issuedAt: "2026-06-01T00:00:00.001Z" }))).to.equal("not_yet_issued");
    expect(check(finding(signed("a", "b"), { expiresAt: now }))).to.equal("expired");
    expect(check(finding(signed("a", "b"), { expiresAt: "2026-06-01T00:00:00.001Z" }))).to.equal("a+b");
  });

  it("goes forward only, and one sequence is one content", () => {
    const seen = (sequence: number, of = digest): string =>
      check(finding(signed("a", "b")), policy(), { sequence, digest: of });
    expect(seen(2, "other")).to.equal("a+b");
    expect(seen(3)).to.equal("a+b");
    expect(seen(3, "other")).to.equal("sequence_reused");
    expect(seen(4)).to.equal("sequence_lower");
  });

  it("refuses what is revoked, whoever signed it", () => {
    const revoked = { digests: [digest], keys: [] };
    expect(check(finding(signed("a", "b", "c")), policy({ revoked }))).to.equal("digest_revoked");
  });
});
