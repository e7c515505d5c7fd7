import { expect } from "chai";
import type { TrustedIdentity, TrustedSigner, TrustPolicy } from "../../../core/config/trust-policy.ts";
import type { Identity } from "../../../core/trust/identity.ts";
import {
  type CheckedExtension,
  type CheckedSignature,
  judgeTrust,
  type SeenSequence,
} from "../../../core/trust/quorum.ts";
import { TrustRefusalError } from "../../../core/trust/refusal.ts";

const now = "2026-06-01T00:00:00.000Z";
const digest = `sha256:${"d".repeat(64)}`;

function key(name: string, more: Partial<TrustedSigner> = {}): TrustedSigner {
  const whole = { identity: null, notBefore: null, notAfter: null, tightenOnly: false, ...more };
  return { name, key: { keyId: `id-${name}`, spki: "" }, ...whole };
}

const ci: TrustedIdentity = {
  issuer: "https://id.example",
  subject: { kind: "uri", prefix: "https://ci.example/team/" },
};

function named(subject: string, ...times: readonly string[]): CheckedSignature {
  const identity = { issuer: ci.issuer, subject: `https://ci.example/team/${subject}`, kind: "uri" } as const;
  return { keyId: `id-of-${subject}`, identity, times, proof: "valid" };
}

function policy(more: Partial<TrustPolicy> = {}): TrustPolicy {
  const anyOf = { minimum: 2, signers: [key("a"), key("b"), key("c")] };
  return { allOf: [], anyOf, revoked: { digests: [], keys: [] }, trustedRoot: null, builder: null, ...more };
}

function signed(...names: readonly string[]): readonly CheckedSignature[] {
  return names.map((name) => ({ keyId: `id-${name}`, identity: null, times: [], proof: "valid" }));
}

function finding(
  signatures: readonly CheckedSignature[],
  statement: Partial<CheckedExtension["statement"]> = {},
): CheckedExtension {
  const whole: CheckedExtension["statement"] = {
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

function check(found: CheckedExtension, by: TrustPolicy = policy(), seen?: SeenSequence): string {
  try {
    return judgeTrust(found, by, now, seen).signers.join("+");
  } catch (error) {
    if (!(error instanceof TrustRefusalError)) throw error;
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
    const by = (keyId: string, proof: CheckedSignature["proof"]): CheckedSignature => ({
      keyId,
      identity: null,
      times: [],
      proof,
    });
    const bad = by("id-c", { check: "signature_invalid", detail: undefined });
    expect(check(finding([...signed("a", "b"), bad]))).to.equal("signature_invalid");
    expect(check(finding([...signed("a", "b"), by("stranger", "unknown")]))).to.equal("a+b");
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

  it("holds a statement to its time, the last instant excluded; the signer's clock may be a minute ahead", () => {
    expect(check(finding(signed("a", "b"), { issuedAt: "2026-06-01T00:01:00.000Z" }))).to.equal("a+b");
    expect(check(finding(signed("a", "b"), { issuedAt: "2026-06-01T00:01:00.001Z" }))).to.equal("not_yet_issued");
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

  describe("with identities", () => {
    const at = "2026-03-01T12:00:00.000Z";
    const team = (more: Partial<TrustedSigner> = {}): TrustedSigner => key("team", { identity: ci, ...more });
    const oneOf = (signer: TrustedSigner): TrustPolicy => policy({ allOf: [signer], anyOf: null });

    it("counts a signer once, by however many identities and keys", () => {
      const two = policy({ anyOf: { minimum: 2, signers: [team(), key("b")] } });
      expect(check(finding([named("a", at), named("b", at), ...signed("team")]), two)).to.equal("signers_missing");
      expect(check(finding([named("a", at), ...signed("b")]), two)).to.equal("b+team");
      expect(check(finding(signed("team", "b")), two)).to.equal("b+team");
    });

    it("lets one that may only tighten allow nothing", () => {
      const only = oneOf(team({ tightenOnly: true }));
      expect(judgeTrust(finding([named("a", at)]), only, now, undefined).tightenOnly).to.equal(true);
      expect(judgeTrust(finding([named("a", at)]), oneOf(team()), now, undefined).tightenOnly).to.equal(false);
    });

    it("tells who they are and the first time that is proven, each once", () => {
      const later = "2026-03-02T12:00:00.000Z";
      const found = finding([named("b", later), named("a", later), named("a", at, later)]);
      const { identities } = judgeTrust(found, oneOf(team()), now, undefined);
      expect(identities.map(({ subject, signedAt }) => [subject, signedAt])).to.deep.equal([
        ["https://ci.example/team/a", at],
        ["https://ci.example/team/b", later],
      ]);
    });

    it("counts an identity by when it signed", () => {
      const between = (notBefore: string | null, notAfter: string | null, ...times: readonly string[]): string =>
        check(finding([named("a", ...times)]), oneOf(team({ notBefore, notAfter })));
      expect(between(at, null, at)).to.equal("team");
      expect(between(null, "2026-03-01T12:00:00.001Z", at)).to.equal("team");
      expect(between(null, at, at)).to.equal("key_expired");
      expect(between("2026-03-01T12:00:00.001Z", null, at, now)).to.equal("key_not_yet_valid");
    });

    it("does not know a certificate by its key, nor a key by an identity", () => {
      const { keyId } = named("a", at);
      const byKey = oneOf(key("a", { key: { keyId, spki: "" } }));
      expect(check(finding([{ ...named("a", at), proof: "unknown" }]), byKey)).to.equal("identity_unknown");
    });

    it("says what an identity lacks where somebody is missing, and else nothing", () => {
      const other = (more: Partial<Identity>): CheckedSignature => {
        const known = named("a", at);
        return { ...known, identity: { ...(known.identity as Identity), ...more }, proof: "unknown" };
      };
      const issuer = other({ issuer: "https://id.example.evil" });
      expect(check(finding([issuer]), oneOf(team()))).to.equal("identity_issuer");
      const elsewhere = [
        "https://ci.example/team-evil/a",
        "https://ci.example/team/../evil",
        "https://ci.example/team",
      ];
      for (const subject of [...elsewhere, "https://ci.example/team/%2e%2e/evil"]) {
        expect(check(finding([other({ subject })]), oneOf(team())), subject).to.equal("identity_unknown");
      }
      expect(check(finding([other({ kind: "email" })]), oneOf(team()))).to.equal("identity_unknown");
      expect(check(finding([issuer, ...signed("a", "b")]))).to.equal("a+b");
    });

    it("does without one that rests on a revoked key, where there are enough others", () => {
      const gone: CheckedSignature = { ...named("a", at), proof: { check: "key_revoked", detail: undefined } };
      expect(check(finding([gone]), oneOf(team()))).to.equal("key_revoked");
      expect(check(finding([gone, ...signed("team")]), oneOf(team()))).to.equal("team");
    });
  });

  it("refuses what is revoked, whoever signed it", () => {
    const revoked = { digests: [digest], keys: [] };
    expect(check(finding(signed("a", "b", "c")), policy({ revoked }))).to.equal("digest_revoked");
  });
});
