import { bundleFromJSON } from "@sigstore/bundle";
import { TrustedRoot } from "@sigstore/protobuf-specs";
import {
  toSignedEntity,
  toTrustMaterial,
  type VerificationPolicy,
  Verifier,
  type VerifierOptions,
} from "@sigstore/verify";
import { expect } from "chai";
import type { JsonObject } from "../../../core/action/json.ts";
import { matchesIdentity, proveIdentity, readCertificate } from "../../../core/trust/identity.ts";
import { extension, timeStamping } from "../../support/sigstore/authority.ts";
import { sequence } from "../../support/sigstore/der.ts";
import {
  issuer,
  type RootChange,
  type Signing,
  SigstoreWorld,
  signedAt,
  subject,
} from "../../support/sigstore/world.ts";

const sigstore = new SigstoreWorld();
const { log } = sigstore;
const payload = Buffer.from("{}");
const closed = { start: "2020-01-01T00:00:00Z", end: "2026-02-01T00:00:00Z" };

function signed(how: Signing, change: RootChange): Parameters<typeof proveIdentity> {
  const bundle = bundleFromJSON(JSON.parse(sigstore.sign(payload, how)));
  const { content } = bundle.verificationMaterial;
  if (content.$case !== "certificate") throw new Error("expected a certificate");
  const certificate = readCertificate(Buffer.from(content.certificate.rawBytes));
  return [bundle, certificate, JSON.parse(sigstore.trustedRoot(change)) as JsonObject, []];
}

function prove(how: Signing, change: RootChange = {}): string {
  const proven = proveIdentity(...signed(how, change));
  return "check" in proven ? proven.check : proven.join(" ");
}

/** What the library says of the same, told to ask for as much. */
function libraryTrusts(
  how: Signing,
  change: RootChange,
  options: VerifierOptions,
  policy?: VerificationPolicy,
): boolean {
  const [bundle, , root] = signed(how, change);
  const material = toTrustMaterial(TrustedRoot.fromJSON(root));
  new Verifier(material, { ctlogThreshold: 0, tlogThreshold: 0, ...options }).verify(toSignedEntity(bundle), policy);
  return true;
}

describe("proveIdentity(bundle, certificate, trustedRoot, revokedKeys)", () => {
  it("tells every time that is proven, the first of them first", () => {
    const at = signedAt.toISOString();
    expect(prove({})).to.equal(at);
    expect(prove({ log }, { logs: [log] })).to.equal(`${at} ${at}`);
    expect(prove({ log, timeAuthority: null }, { logs: [log] })).to.equal(at);
  });

  it("takes nothing back for a key that has no part in it", () => {
    const [bundle, certificate, root] = signed({}, {});
    expect(proveIdentity(bundle, certificate, root, [`sha256:${"0".repeat(64)}`])).to.be.an("array");
  });

  describe("refuses, where the library alone does not,", () => {
    const cases: readonly (readonly [what: string, check: string, how: Signing, change: RootChange])[] = [
      ["a certificate for something else", "certificate_usage", { usages: [timeStamping] }, {}],
      [
        "a limit that nobody reads",
        "certificate_usage",
        { extensions: [extension("2.5.29.30", sequence(), true)] },
        {},
      ],
      [
        "a closed log, the time by a stamp",
        "log_entry_invalid",
        { log, promised: false },
        { logs: [log], logValidFor: closed },
      ],
      ["no entry, where the root names a log", "log_entry_missing", {}, { logs: [log] }],
      ["no receipt, where the root names a certificate log", "certificate_untrusted", {}, { certificateLogs: [log] }],
    ];
    for (const [what, check, how, change] of cases) {
      it(what, () => {
        expect(libraryTrusts(how, change, {})).to.equal(true);
        expect(prove(how, change)).to.equal(check);
      });
    }

    it("a look-alike identity", () => {
      const how = { subject: `${subject}-evil` };
      expect(libraryTrusts(how, {}, {}, { subjectAlternativeName: subject, extensions: { issuer } })).to.equal(true);
      const [, { identity }] = signed(how, {});
      expect(matchesIdentity(identity, { issuer, subject: { kind: "uri", equal: subject } })).to.equal(false);
    });
  });
});
