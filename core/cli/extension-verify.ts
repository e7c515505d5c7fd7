import { GatewayError } from "../action/error.ts";
import { loadTrustFile } from "../config/trust-file.ts";
import { renderBuild, renderIdentity } from "../policy/extension-load.ts";
import { readExtensionFolder } from "../trust/folder.ts";
import { describeRefusal, type TrustRefusal } from "../trust/refusal.ts";
import type { BuildStatement, ExtensionKind } from "../trust/verified-extension.ts";
import { isRefused } from "../trust/verified-extension.ts";
import { readSigned, verifyExtension } from "../trust/verifier.ts";
import { readContent } from "./extension-sign.ts";
import { print } from "./print.ts";

interface VerifyOptions {
  readonly trust: string;
  readonly json?: true;
}

/** `gateway pack verify`, `gateway plugin verify` and `gateway engine verify`. */
export function verifyFolder(kind: ExtensionKind): (path: string, options: VerifyOptions) => Promise<void> {
  return (path, options) => verify(kind, path, options);
}

/** `gateway pack inspect`, `gateway plugin inspect` and `gateway engine inspect`. */
export function inspectFolder(kind: ExtensionKind): (path: string, options: { readonly json?: true }) => Promise<void> {
  return (path, options) => inspect(kind, path, options);
}

async function verify(kind: ExtensionKind, path: string, { trust, json }: VerifyOptions): Promise<void> {
  const { policy } = await loadTrustFile(trust);
  const folder = await readExtensionFolder(path, kind);
  const result = await verifyExtension(folder, policy, new Date().toISOString(), async () => undefined);
  if (isRefused(result)) return refuse(path, result, json);
  const content = await readContent(kind, path, result).catch((cause) => refuseContent(cause, json));
  const { name, version, sequence } = content;
  const { signers, digest, build } = result;
  if (json) {
    const identities = result.identities.map(renderIdentity);
    const summary = { ok: true, name, version, sequence, digest, signers, identities };
    return print(JSON.stringify({ ...summary, build: build === null ? null : renderBuild(build) }));
  }
  print(`${name} ${version}: trusted, signed by ${signers.join(", ")}, ${digest}`);
  for (const { signer, issuer, subject, signedAt } of result.identities) {
    print(`${signer}: ${subject} of ${issuer}, at ${signedAt}`);
  }
  if (build !== null) print(describeBuild(build));
}

async function inspect(kind: ExtensionKind, path: string, { json }: { readonly json?: true }): Promise<void> {
  const folder = await readExtensionFolder(path, kind);
  const signed = readSigned(folder);
  if (isRefused(signed)) return refuse(path, signed, json);
  const { name, version, sequence, issuedAt, expiresAt, subjects } = signed.statement;
  const summary = {
    kind,
    name,
    version,
    sequence,
    issued_at: issuedAt,
    expires_at: expiresAt,
    files: subjects.size,
    digest: folder.digest,
    bundle_digest: signed.bundleDigest,
    keys: signed.bundles.map(({ keyId }) => keyId),
  };
  const identities = signed.bundles.flatMap(({ certificate }) => certificate?.identity ?? []);
  const { build } = signed;
  if (json) {
    const named = identities.map(({ issuer, subject }) => ({ issuer, subject }));
    return print(
      JSON.stringify({
        ok: true,
        ...summary,
        identities: named,
        build: build === null ? null : renderBuild(build.statement),
      }),
    );
  }
  for (const [key, value] of Object.entries(summary))
    print(`${key}: ${Array.isArray(value) ? value.join(" ") : value}`);
  for (const { issuer, subject } of identities) print(`identity: ${subject} of ${issuer}`);
  if (build !== null) print(describeBuild(build.statement));
}

function describeBuild({ digest, predicateType, builder, provenBy }: BuildStatement): string {
  const by = builder === null ? "" : `, by ${builder}`;
  const proof =
    provenBy === null ? "" : `, proven by ${provenBy.subject} of ${provenBy.issuer}, at ${provenBy.signedAt}`;
  return `build: ${digest}, ${predicateType}${by}${proof}`;
}

function refuse(path: string, refused: TrustRefusal, json: true | undefined): void {
  process.exitCode = 1;
  const message = describeRefusal(refused);
  print(json ? JSON.stringify({ ok: false, check: refused.check, message }) : `${path}: ${message}`);
}

/** Refuses content that is signed but faulty, with the compiler's error. */
function refuseContent(cause: unknown, json: true | undefined): never {
  const error = GatewayError.from(cause);
  if (json && /^(?:PACK|PLUGIN|ENGINE)_INVALID$/.test(error.code))
    print(JSON.stringify({ ok: false, check: "content_invalid" }));
  throw error;
}
