import { bundleToJSON, toMessageSignatureBundle } from "@sigstore/bundle";
import { expect } from "chai";
import type { JsonObject } from "../../../core/action/json.ts";
import type { TrustPolicy } from "../../../core/config/trust-policy.ts";
import { parseTrustedRoot } from "../../../core/config/trusted-root.ts";
import { assembleFolder } from "../../../core/trust/folder.ts";
import { statementBytes } from "../../../core/trust/statement.ts";
import { isRefused } from "../../../core/trust/verified-extension.ts";
import { verifyExtension } from "../../../core/trust/verifier.ts";
import { makeKeys } from "../../support/sigstore/authority.ts";
import { TimeAuthority } from "../../support/sigstore/time-authority.ts";
import {
  issuer,
  type RootChange,
  type Signing,
  SigstoreWorld,
  signedAt,
  subject,
} from "../../support/sigstore/world.ts";
import { makeSigner, signBundle } from "../../support/trust-world.ts";

const sigstore = new SigstoreWorld();
const { log } = sigstore;
const files = new Map([["pack.yaml", Buffer.from("rules")]]);
const { fileDigests } = assembleFolder("x", "pack", files);
const claim = {
  kind: "pack",
  name: "x",
  version: "1.0.0",
  sequence: 0,
  expiresAt: null,
  subjects: fileDigests,
} as const;
const payload = statementBytes({ ...claim, issuedAt: "2026-01-01T00:00:00.000Z" });
const other = Buffer.from("other");

/** Returns `trusted`, or the failed check, of a pack with this signature file. */
async function verify(signature: string, change: RootChange = {}): Promise<string> {
  const folder = assembleFolder("x", "pack", new Map([...files, ["pack.sigstore.json", Buffer.from(signature)]]));
  const identity = { issuer, subject: { kind: "uri", equal: subject } } as const;
  const policy: TrustPolicy = {
    allOf: [{ name: "ci", key: null, identity, notBefore: null, notAfter: null, tightenOnly: false }],
    anyOf: null,
    trustedRoot: JSON.parse(sigstore.trustedRoot({ logs: [log], ...change })) as JsonObject,
    builder: null,
    revoked: { digests: [], keys: [] },
  };
  const result = await verifyExtension(folder, policy, "2026-06-01T00:00:00.000Z", async () => undefined);
  return isRefused(result) ? result.check : result.trust;
}

/** Each kind of bundle of Sigstore's public conformance suite by its name there, made by authorities and a log of the tests' own. */
describe("bundles of the kinds of Sigstore's public suite", () => {
  const end = { start: "2020-01-01T00:00:00Z", end: signedAt.toISOString() };
  const over = { start: "2020-01-01T00:00:00Z", end: new Date(signedAt.getTime() - 1_000).toISOString() };
  const elsewhere = new TimeAuthority("other time");
  const kinds: readonly (readonly [name: string, verdict: string, how: Signing, change?: RootChange])[] = [
    ["dsse-happy-path", "trusted", { log }],
    ["dsse-invalid-sig_fail", "signature_invalid", { log, over: other }],
    ["dsse-mismatch-envelope_fail", "log_entry_invalid", { log, logged: { payload: other } }],
    ["dsse-mismatch-sig_fail", "log_entry_invalid", { log, logged: { signature: other } }],
    ["no-tlog-entry_fail", "log_entry_missing", {}],
    ["rekor2-dsse-happy-path", "trusted", { log, rekor: 2 }],
    ["rekor2-dsse-invalid-sig_fail", "signature_invalid", { log, rekor: 2, over: other }],
    ["rekor2-dsse-mismatch-envelope_fail", "log_entry_invalid", { log, rekor: 2, logged: { payload: other } }],
    ["rekor2-dsse-mismatch-sig_fail", "log_entry_invalid", { log, rekor: 2, logged: { signature: other } }],
    ["rekor2-no-timestamp_fail", "time_unproven", { log, rekor: 2, timeAuthority: null }],
    ["rekor2-timestamp-of-other-bytes_fail", "timestamp_invalid", { log, rekor: 2, stamped: other }],
    [
      "rekor2-multiple-timestamps-one-outside-cert-validity_fail",
      "certificate_expired",
      { log, rekor: 2, alsoStampedAt: new Date(signedAt.getTime() + 3_600_000) },
    ],
    ["rekor2-timestamp-untrusted-tsa_fail", "timestamp_invalid", { log, rekor: 2, timeAuthority: elsewhere }],
    ["trust-root-tsa-validity-end-inclusive", "trusted", { log, rekor: 2 }, { timeAuthorityValidFor: end }],
    ["trust-root-tsa-validity-over_fail", "timestamp_invalid", { log, rekor: 2 }, { timeAuthorityValidFor: over }],
    ["trust-root-tlog-validity-end-inclusive", "trusted", { log }, { logValidFor: end }],
    ["trust-root-tlog-validity-over_fail", "log_entry_invalid", { log }, { logValidFor: over }],
  ];
  for (const [name, verdict, how, change] of kinds) {
    it(`${name}: ${verdict} [S89]`, async () => {
      expect(await verify(sigstore.sign(payload, how), change)).to.equal(verdict);
    });
  }

  it("cve-2022-36056-swapped-tlog-entry_fail: log_entry_invalid [S89]", async () => {
    const [mine, theirs] = [sigstore.sign(payload, { log }), sigstore.sign(payload, { log })].map((line) =>
      JSON.parse(line),
    );
    mine.verificationMaterial.tlogEntries = theirs.verificationMaterial.tlogEntries;
    expect(await verify(`${JSON.stringify(mine)}\n`)).to.equal("log_entry_invalid");
  });

  it("dsse-statement-missing-type_fail and unknown-type_fail: statement_malformed", async () => {
    const { _type, ...rest } = JSON.parse(payload.toString());
    expect(_type).to.be.a("string");
    for (const statement of [rest, { _type: "https://in-toto.io/Statement/v9", ...rest }])
      expect(await verify(sigstore.sign(Buffer.from(JSON.stringify(statement)), { log }))).to.equal(
        "statement_malformed",
      );
  });

  it("trust-root-tlog-missing-validity-start_fail: the root is not loaded", () => {
    const root = sigstore.trustedRoot({ logs: [log], logValidFor: {} });
    const expected = "a start of validity of each authority and log, got none";
    expect(parseTrustedRoot(root)).to.deep.equal({ expected });
    expect(parseTrustedRoot(sigstore.trustedRoot({ logs: [log] }))).to.include.keys("root");
  });

  // The suite accepts both; a signature file here is DSSE, and a key of one's own needs no log.
  it("happy-path of a message signature, and managed-key-and-trusted-root: bundle_malformed, since neither is our format", async () => {
    const certificate = sigstore.certify(makeKeys().publicKey, {});
    const message = toMessageSignatureBundle({ digest: other, signature: other, certificate });
    expect(await verify(`${JSON.stringify(bundleToJSON(message))}\n`)).to.equal("bundle_malformed");
    const managed = JSON.parse(signBundle(makeSigner(), payload));
    const { verificationMaterial } = JSON.parse(sigstore.sign(payload, { log }));
    managed.verificationMaterial.tlogEntries = verificationMaterial.tlogEntries;
    expect(await verify(`${JSON.stringify(managed)}\n`)).to.equal("bundle_malformed");
  });
});
