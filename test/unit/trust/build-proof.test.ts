import { expect } from "chai";
import { sha256Hex } from "../../../core/action/canonical-json.ts";
import type { JsonObject } from "../../../core/action/json.ts";
import type { TrustedSubject, TrustPolicy } from "../../../core/config/trust-policy.ts";
import { assembleFolder } from "../../../core/trust/folder.ts";
import { statementBytes } from "../../../core/trust/statement.ts";
import { type ExtensionKind, isRefused } from "../../../core/trust/verified-extension.ts";
import { verifyExtension } from "../../../core/trust/verifier.ts";
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
const signer = makeSigner();
const module = Buffer.from("module");
const slsa = "https://slsa.dev/provenance/v1";

interface Case {
  /** The build statement. */
  readonly about?: Buffer;
  readonly predicateType?: string;
  readonly how?: Signing;
  /** The bytes of `build.sigstore.json`, made of a proper one; null for none. */
  readonly file?: (proper: string) => string | null;
  readonly root?: RootChange;
  readonly subject?: TrustedSubject;
  readonly revoked?: readonly string[];
  readonly kind?: ExtensionKind;
  /** The files beside the bundle; a module unless told. */
  readonly files?: Readonly<Record<string, Buffer>>;
  readonly asked?: boolean;
}

function buildOf({ about = module, predicateType = slsa }: Case): Buffer {
  const predicate = { runDetails: { builder: { id: "https://ci.example/builder" } } };
  const subjects = [{ name: "dist/x", digest: { sha256: sha256Hex(about) } }];
  return Buffer.from(
    JSON.stringify({ _type: "https://in-toto.io/Statement/v1", subject: subjects, predicateType, predicate }),
  );
}

/** Returns the proven builder and time, `unproven`, or the failed check with its detail. */
async function prove(given: Case): Promise<string> {
  const { how = {}, kind = "plugin", files = { "plugin.wasm": module }, root = {}, revoked = [] } = given;
  const proper = sigstore.sign(buildOf(given), how);
  const file = given.file === undefined ? proper : given.file(proper);
  const all = { ...files, ...(file === null ? {} : { "build.sigstore.json": Buffer.from(file) }) };
  const { fileDigests } = assembleFolder("x", kind, new Map(Object.entries(all)));
  const issuedAt = "2026-01-01T00:00:00.000Z";
  const claim = { kind, name: "x", version: "1.0.0", sequence: 0, issuedAt, expiresAt: null };
  const signature = signBundle(signer, statementBytes({ ...claim, subjects: fileDigests }));
  const signed = new Map([...Object.entries(all), [`${kind}.sigstore.json`, Buffer.from(signature)] as const]);
  const key = { keyId: signer.id, spki: signer.spki };
  const unbounded = { identity: null, notBefore: null, notAfter: null, tightenOnly: false };
  const builder = { issuer, subject: given.subject ?? { kind: "uri", equal: subject } };
  const policy: TrustPolicy = {
    allOf: [{ ...unbounded, name: "ada", key }],
    anyOf: null,
    trustedRoot: JSON.parse(sigstore.trustedRoot(root)) as JsonObject,
    builder: given.asked === false ? null : builder,
    revoked: { digests: [], keys: revoked },
  };
  const now = "2026-06-01T00:00:00.000Z";
  const result = await verifyExtension(assembleFolder("x", kind, signed), policy, now, async () => undefined);
  if (isRefused(result)) return `${result.check} ${result.detail ?? ""}`.trim();
  const { provenBy } = result.build ?? {};
  return provenBy ? `${provenBy.subject} of ${provenBy.issuer} at ${provenBy.signedAt}` : "unproven";
}

describe("the builder of a trust policy", () => {
  it("is proven by the certificate of a bundle, and the time it was made [S89]", async () => {
    const proven = `${subject} of ${issuer} at ${signedAt.toISOString()}`;
    expect(await prove({})).to.equal(proven);
    expect(await prove({ subject: { kind: "uri", prefix: "https://ci.example/team/" } })).to.equal(proven);
    expect(await prove({ file: (proper) => JSON.stringify(JSON.parse(proper), null, 2) }), "laid out").to.equal(proven);
  });

  it("is not asked of what has no module, nor where the policy names none", async () => {
    const files = { "pack.yaml": Buffer.from("rules") };
    expect(await prove({ kind: "pack", files, file: () => null })).to.equal("unproven");
    expect(await prove({ asked: false, how: { issuer: "https://other.example" } })).to.equal("unproven");
    expect(await prove({ kind: "pack", files: { ...files, "a.wasm": module }, file: () => null })).to.equal(
      "build_unproven",
    );
    const foreign = {
      kind: "pack",
      files,
      about: Buffer.from("rules"),
      how: { issuer: "https://other.example" },
    } as const;
    expect(await prove(foreign), "a bundle that is there").to.include("identity_issuer");
  });

  const file = "`build.sigstore.json`";
  const mine = `${file}, \`${subject}\``;
  const before = { from: new Date("2026-02-01T00:00:00Z"), to: new Date("2026-02-02T00:00:00Z") };
  const refusals: readonly (readonly [what: string, refusal: string, given: Case])[] = [
    ["no bundle", "build_unproven", { file: () => null }],
    [
      "a bare statement alone",
      "build_unproven",
      { file: () => null, files: { "plugin.wasm": module, "build.intoto.json": buildOf({}) } },
    ],
    [
      "another issuer",
      `identity_issuer ${file}, \`${subject}\` of \`https://other.example\``,
      { how: { issuer: "https://other.example" } },
    ],
    [
      "an identity beside the prefix",
      `identity_unknown ${file}, \`https://ci.example/team-evil/main\` of \`${issuer}\``,
      {
        subject: { kind: "uri", prefix: "https://ci.example/team/" },
        how: { subject: "https://ci.example/team-evil/main" },
      },
    ],
    ["a certificate that had expired", `certificate_expired ${mine}`, { how: { validity: before } }],
    ["no time", `time_unproven ${mine}`, { how: { timeAuthority: null } }],
    ["no log entry where the root has a log", `log_entry_missing ${mine}`, { root: { logs: [sigstore.log] } }],
    [
      "a foreign root",
      `timestamp_invalid ${mine}`,
      { root: { authorities: [new SigstoreWorld().authority], timeAuthorities: [new SigstoreWorld().timeAuthority] } },
    ],
    ["a signature over other bytes", `signature_invalid ${mine}`, { how: { over: Buffer.from("other") } }],
    ["another module", "build_of_another `plugin.wasm`", { about: Buffer.from("other") }],
    ["another predicate", "build_malformed", { predicateType: "https://a.example/v1" }],
    ["a bundle of a key alone", `build_malformed ${file}`, { file: () => signBundle(signer, buildOf({})) }],
    ["two bundles", `build_malformed ${file}`, { file: (proper) => `${proper}${proper}` }],
    ["no bundle but text", `build_malformed ${file}`, { file: () => "{" }],
  ];
  for (const [what, refusal, given] of refusals) {
    it(`is not proven with ${what}: ${refusal.split(" ")[0]} [S89]`, async () => {
      expect(await prove(given)).to.equal(refusal);
    });
  }
});
