import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import { principalId, tokenKeyId, tokenPrincipalId } from "../../../core/action/principal.ts";
import { anonymousPrincipal, generateKey, type KeyEntry, KeyRing } from "../../../core/identity/key-ring.ts";

const first = generateKey(randomBytes);
const second = generateKey(randomBytes);
const entry = (id: string, keyHash: string, tenant = "acme"): KeyEntry => ({ id, tenant, role: "operator", keyHash });

describe("KeyRing", () => {
  describe("keyId(tenant, name)", () => {
    const ring = new KeyRing([entry("a", first.keyHash), entry("b", second.keyHash, "other")]);

    it("is the id of the tenant's key that has this id, or makes its holder that principal", () => {
      expect(ring.keyId("acme", "a")).to.equal("a");
      expect(ring.keyId("acme", principalId("acme", first.keyHash))).to.equal("a");
    });

    it("is that of no other tenant", () => {
      expect([ring.keyId("acme", "b"), ring.keyId("other", "a"), ring.keyId("acme", "c")]).to.deep.equal([
        undefined,
        undefined,
        undefined,
      ]);
      expect(ring.keyId("acme", principalId("other", second.keyHash))).to.equal(undefined);
    });
  });

  describe("with access tokens of a tenant", () => {
    const ring = new KeyRing([entry("a", first.keyHash)], new Set(["acme"]));
    const id = tokenPrincipalId("acme", "https://login.example", "agent");
    const keyId = tokenKeyId("agent");

    it("counts every well-formed principal of that tenant as known, and of no other", () => {
      expect([ring.knows("acme", id), ring.knows("other", id), ring.knows("acme", "agent")]).to.deep.equal([
        true,
        false,
        false,
      ]);
      expect(new KeyRing([]).knows("acme", id)).to.equal(false);
    });

    it("names a subject as its tokens do", () => {
      expect([ring.keyId("acme", keyId), ring.keyId("other", keyId), ring.keyId("acme", "agent")]).to.deep.equal([
        keyId,
        undefined,
        undefined,
      ]);
    });

    it("lets subjects act on when keys are replaced", () => {
      const subject = { id, tenant: "acme", role: "viewer", keyId } as const;
      ring.replace([]);
      expect([ring.has(subject), ring.has({ ...subject, tenant: "other" })]).to.deep.equal([true, false]);
    });

    it("authenticates none of them by name", () => {
      expect([ring.find(id), ring.find(keyId)]).to.deep.equal([undefined, undefined]);
    });
  });

  describe("authenticate(presented)", () => {
    const ring = new KeyRing([entry("a", first.keyHash), entry("b", second.keyHash, "other")]);

    it("tells whose key it is", () => {
      expect(ring.authenticate(first.key)).to.deep.equal({
        id: principalId("acme", first.keyHash),
        tenant: "acme",
        role: "operator",
        keyId: "a",
      });
      expect(ring.authenticate(second.key)).to.include({ tenant: "other", keyId: "b" });
    });

    it("throws KEY_UNKNOWN for anything else, the hash itself included, and repeats nothing of it", () => {
      for (const presented of [
        "",
        "wrong",
        first.keyHash,
        first.key.slice(0, -1),
        `${first.key} `,
        first.key.toUpperCase(),
      ]) {
        expect(() => ring.authenticate(presented))
          .to.throw(GatewayError)
          .that.includes({ code: "KEY_UNKNOWN", message: "unknown key", detail: undefined, data: undefined });
      }
    });

    it("lets nobody in without keys", () => {
      expect(() => new KeyRing([]).authenticate(first.key))
        .to.throw(GatewayError)
        .with.property("code", "KEY_UNKNOWN");
    });

    it("answers a principal that cannot be changed", () => {
      expect(Object.isFrozen(ring.authenticate(first.key))).to.equal(true);
    });
  });

  describe("replace(keys)", () => {
    it("drops the old keys and knows the new ones", () => {
      const ring = new KeyRing([entry("a", first.keyHash)]);
      ring.replace([entry("b", second.keyHash)]);
      expect(() => ring.authenticate(first.key))
        .to.throw(GatewayError)
        .with.property("code", "KEY_UNKNOWN");
      expect(ring.authenticate(second.key).keyId).to.equal("b");
    });

    it("makes another principal of a rotated key", () => {
      const ring = new KeyRing([entry("a", first.keyHash)]);
      const before = ring.authenticate(first.key);
      ring.replace([entry("a", second.keyHash)]);
      expect(ring.authenticate(second.key).id).to.not.equal(before.id);
    });

    it("keeps all the old keys where one of the new is refused", () => {
      const ring = new KeyRing([entry("a", first.keyHash)]);
      expect(() => ring.replace([entry("b", second.keyHash), entry("c", "sha256:short")])).to.throw(TypeError);
      expect(ring.authenticate(first.key).keyId).to.equal("a");
      expect(() => ring.authenticate(second.key))
        .to.throw(GatewayError)
        .with.property("code", "KEY_UNKNOWN");
    });
  });

  it("has a principal for as long as its key is there, in the same role", () => {
    const ring = new KeyRing([entry("a", first.keyHash), entry("b", second.keyHash)]);
    const principal = ring.authenticate(first.key);
    ring.replace([entry("renamed", first.keyHash)]);
    expect(ring.has(principal)).to.equal(true);
    const role = principal.role === "admin" ? "viewer" : "admin";
    ring.replace([{ ...entry("a", first.keyHash), role }]);
    expect(ring.has(principal)).to.equal(false);
    ring.replace([entry("b", second.keyHash)]);
    expect(ring.has(principal)).to.equal(false);
  });

  describe("when an entry is wrong", () => {
    const broken: [string, readonly KeyEntry[], string][] = [
      [
        "one key in two tenants",
        [entry("a", first.keyHash), entry("b", first.keyHash, "other")],
        "KeyRing: expected each key once, got that of `b` again",
      ],
      ["a raw key for a hash", [entry("a", first.key)], "KeyRing: expected `sha256:<64 hex>` as the hash of `a`"],
      ["no tenant", [entry("a", first.keyHash, "")], "KeyRing: expected a tenant for `a`"],
      [
        "an unknown role",
        [JSON.parse(JSON.stringify({ ...entry("a", first.keyHash), role: "root" }))],
        "KeyRing: expected a role for `a`, got `root`",
      ],
    ];
    for (const [name, entries, message] of broken) {
      it(`throws TypeError for ${name}`, () => {
        expect(() => new KeyRing(entries)).to.throw(TypeError, message);
      });
    }
  });
});

describe("anonymousPrincipal(tenant)", () => {
  it("is a viewer of its tenant, the same for every caller, and no key's principal", () => {
    const principal = anonymousPrincipal("acme");
    expect(principal).to.include({ tenant: "acme", role: "viewer", keyId: "anonymous" });
    expect(anonymousPrincipal("acme")).to.deep.equal(principal);
    expect(anonymousPrincipal("other").id).to.not.equal(principal.id);
    expect(principal.id)
      .to.match(/^principal-v1-[0-9a-f]{64}$/)
      .and.not.equal(principalId("acme", first.keyHash));
  });
});
