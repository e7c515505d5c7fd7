import { readFile } from "node:fs/promises";
import { expect } from "chai";
import { canonicalJson } from "../../../core/action/canonical-json.ts";
import type { JsonObject } from "../../../core/action/json.ts";
import type { TrustedSigner, TrustPolicy } from "../../../core/config/trust-policy.ts";
import { readExtensionFolder } from "../../../core/trust/folder.ts";
import { acceptUnverified, isRefused, VerifiedExtension } from "../../../core/trust/verified-extension.ts";
import { verifyExtension } from "../../../core/trust/verifier.ts";
import { issuer, SigstoreWorld, signedAt, subject } from "../../support/sigstore/world.ts";
import { makeSigner, type Signer, TrustWorld } from "../../support/trust-world.ts";

const [ed25519, p256] = [makeSigner("ed25519"), makeSigner("p256")];
const now = "2026-06-01T00:00:00.000Z";
const signatureFile = "packs/open/pack.sigstore.json";

describe("verifyExtension(folder, policy, now, lookUp)", () => {
  let world: TrustWorld;

  before(async () => {
    world = await TrustWorld.make();
  });

  after(() => world.remove());

  for (const [kind, signer] of Object.entries({ Ed25519: ed25519, "ECDSA P-256": p256 })) {
    it(`trusts what an ${kind} key signed, and no such file with any bit of it flipped`, async () => {
      await world.sign([signer]);
      const good = await readFile(world.path(signatureFile));
      expect(await verify(signer)).to.equal("pat");
      const folder = await readExtensionFolder(world.pack, "pack");
      const passed: number[] = [];
      for (let at = 0; at < good.length - 1; at++) {
        const signature = Buffer.from(good);
        signature.writeUInt8(good.readUInt8(at) ^ (1 << (at % 8)), at);
        const result = await verifyExtension({ ...folder, signature }, policyOf(signer), now, nothingSeen);
        if (!isRefused(result)) passed.push(at);
      }
      expect(passed).to.deep.equal([]);
    });
  }

  it("never takes a certificate's signature with a flipped bit for another identity or time", async () => {
    const sigstore = new SigstoreWorld();
    const { log } = sigstore;
    await world.write(signatureFile, sigstore.sign(await world.statement(), { log }));
    const good = await readFile(world.path(signatureFile));
    const trustedRoot = JSON.parse(sigstore.trustedRoot({ logs: [log] })) as JsonObject;
    const policy: TrustPolicy = { ...policyOf(p256), allOf: [release], trustedRoot };
    const folder = await readExtensionFolder(world.pack, "pack");
    const tell = async (signature: Buffer): Promise<string> => {
      const result = await verifyExtension({ ...folder, signature }, policy, now, nothingSeen);
      return isRefused(result) ? "refused" : canonicalJson(result.identities.map((each) => ({ ...each })));
    };
    const proven = canonicalJson([{ issuer, signedAt: signedAt.toISOString(), signer: "release", subject }]);
    expect(await tell(good)).to.equal(proven);
    const told = new Map<string, number>();
    for (let at = 0; at < good.length - 1; at += 13) {
      const signature = Buffer.from(good);
      signature.writeUInt8(good.readUInt8(at) ^ (1 << (at % 8)), at);
      const answer = await tell(signature);
      told.set(answer, (told.get(answer) ?? 0) + 1);
    }
    // Some bytes of a time stamp are signed by nobody.
    expect([...told.keys()].filter((answer) => answer !== proven)).to.deep.equal(["refused"]);
    expect(told.get("refused")).to.be.above((told.get(proven) ?? 0) * 10);
  });

  it("trusts nothing by the key of another", async () => {
    await world.sign([ed25519]);
    expect(await verify(p256)).to.equal("signers_missing");
  });

  it("gives out the bytes that were verified, and those alone", async () => {
    await world.sign([ed25519]);
    const folder = await readExtensionFolder(world.pack, "pack");
    const result = await verifyExtension(folder, policyOf(ed25519), now, nothingSeen);
    if (isRefused(result)) throw new Error(result.check);
    await world.write("packs/open/rules/all.yaml", "rules: [] # changed after it was verified\n");
    expect(VerifiedExtension.open(result)).to.equal(folder.files);
    expect(VerifiedExtension.open(result).get("rules/all.yaml")?.toString()).not.to.include("changed");
    expect([...VerifiedExtension.open(result).keys()]).not.to.include("pack.sigstore.json");
  });

  async function verify(signer: Signer): Promise<string> {
    const folder = await readExtensionFolder(world.pack, "pack");
    const result = await verifyExtension(folder, policyOf(signer), now, nothingSeen);
    return isRefused(result) ? result.check : result.signers.join("+");
  }
});

describe("a VerifiedExtension", () => {
  it("cannot be made up", async () => {
    const world = await TrustWorld.make();
    const folder = await readExtensionFolder(world.pack, "pack");
    await world.remove();
    const accepted = acceptUnverified(folder, null);
    expect(accepted).to.include({ trust: "unsigned", signer: null, check: null, bundleDigest: null });
    const posed = { ...accepted, trust: "trusted" } as unknown as VerifiedExtension;
    expect(() => VerifiedExtension.open(posed)).to.throw(TypeError, "expected a VerifiedExtension");
    expect(() => VerifiedExtension.open(Object.create(accepted))).to.throw(TypeError);
    expect(() => Object.assign(accepted, { trust: "trusted" })).to.throw(TypeError);
  });
});

const release: TrustedSigner = {
  name: "release",
  key: null,
  identity: { issuer, subject: { kind: "uri", equal: subject } },
  notBefore: null,
  notAfter: null,
  tightenOnly: false,
};

function policyOf({ id, spki }: Signer): TrustPolicy {
  const unbounded = { notBefore: null, notAfter: null, tightenOnly: false };
  const signer = { name: "pat", key: { keyId: id, spki }, identity: null, ...unbounded };
  return { allOf: [signer], anyOf: null, trustedRoot: null, builder: null, revoked: { digests: [], keys: [] } };
}

async function nothingSeen(): Promise<undefined> {
  return undefined;
}
