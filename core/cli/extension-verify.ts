import { resolve } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { GatewayError } from "../action/error.ts";
import { VerifyingKey } from "../action/signing-key.ts";
import { loadTrustFile } from "../config/trust-file.ts";
import type { Witness } from "../evidence/witness/witness.ts";
import { FileWitness } from "../evidence/witness/witness-file.ts";
import { HttpWitness } from "../evidence/witness/witness-http.ts";
import { renderBuild, renderIdentity } from "../policy/extension-load.ts";
import { readExtensionFolder } from "../trust/folder.ts";
import { describeRefusal, type TrustRefusal } from "../trust/refusal.ts";
import type { BuildStatement, ExtensionKind } from "../trust/verified-extension.ts";
import { isRefused, readSigned, verifyExtension } from "../trust/verifier.ts";
import { readContent } from "./extension-sign.ts";
import { print } from "./print.ts";

interface VerifyOptions {
  readonly trust: string;
  readonly json?: true;
}

/** `gateway pack verify` and `gateway plugin verify`. */
export function verifyCommand(kind: ExtensionKind): Command {
  return new Command("verify")
    .description(`check a ${kind} as a strict gateway would that never saw it before; exit 1 if it is refused`)
    .argument("[folder]", `the ${kind}'s folder`, ".")
    .requiredOption("-t, --trust <file>", "trust policy")
    .option("--json", "print JSON")
    .action((folder: string, options: VerifyOptions) => verifyFolder(kind, folder, options));
}

/** `gateway pack inspect` and `gateway plugin inspect`. */
export function inspectCommand(kind: ExtensionKind): Command {
  return new Command("inspect")
    .description(`print what a ${kind}'s signatures say, whoever made them; exit 1 if they are not of these files`)
    .argument("[folder]", `the ${kind}'s folder`, ".")
    .option("--json", "print JSON")
    .action((folder: string, options: { readonly json?: true }) => inspectFolder(kind, folder, options));
}

async function verifyFolder(kind: ExtensionKind, path: string, { trust, json }: VerifyOptions): Promise<void> {
  const { policy } = await loadTrustFile(trust);
  const folder = await readExtensionFolder(path, kind);
  const result = await verifyExtension(folder, policy, new Date().toISOString(), async () => undefined);
  if (isRefused(result)) return refuse(path, result, json);
  const content = await readContent(kind, path, result).catch((cause) => refuseContent(cause, json));
  const { name, version, sequence } = content;
  const { signers, digest, build } = result;
  if (json) {
    const identities = result.identities.map(renderIdentity);
    const told = { ok: true, name, version, sequence, digest, signers, identities };
    return print(JSON.stringify({ ...told, build: build === null ? null : renderBuild(build) }));
  }
  print(`${name} ${version}: trusted, signed by ${signers.join(", ")}, ${digest}`);
  for (const { signer, issuer, subject, signedAt } of result.identities) {
    print(`${signer}: ${subject} of ${issuer}, at ${signedAt}`);
  }
  if (build !== null) print(describeBuild(build));
}

async function inspectFolder(kind: ExtensionKind, path: string, { json }: { readonly json?: true }): Promise<void> {
  const folder = await readExtensionFolder(path, kind);
  const signed = readSigned(folder);
  if (isRefused(signed)) return refuse(path, signed, json);
  const { name, version, sequence, issuedAt, expiresAt, subjects } = signed.statement;
  const told = {
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
      JSON.stringify({ ok: true, ...told, identities: named, build: build === null ? null : renderBuild(build) }),
    );
  }
  for (const [key, value] of Object.entries(told)) print(`${key}: ${Array.isArray(value) ? value.join(" ") : value}`);
  for (const { issuer, subject } of identities) print(`identity: ${subject} of ${issuer}`);
  if (build !== null) print(describeBuild(build));
}

function describeBuild({ digest, predicateType, builder }: BuildStatement): string {
  return `build: ${digest}, ${predicateType}${builder === null ? "" : `, by ${builder}`}`;
}

function refuse(path: string, refused: TrustRefusal, json: true | undefined): void {
  process.exitCode = 1;
  const message = describeRefusal(refused);
  print(json ? JSON.stringify({ ok: false, check: refused.check, message }) : `${path}: ${message}`);
}

/** What is signed but unsound is refused as well, in the words of the compiler. */
function refuseContent(cause: unknown, json: true | undefined): never {
  const error = GatewayError.from(cause);
  if (json && /^(?:PACK|PLUGIN)_INVALID$/.test(error.code))
    print(JSON.stringify({ ok: false, check: "content_invalid" }));
  throw error;
}

/** One more of `--key <base64>`. */
export function addKey(text: string, keys: readonly VerifyingKey[]): readonly VerifyingKey[] {
  const key = VerifyingKey.parse(text);
  if (key === undefined) throw new InvalidArgumentError("expected the base64 of 32 bytes");
  return [...keys, key];
}

/** One more text of a repeatable option. */
export function addText(text: string, texts: readonly string[]): readonly string[] {
  return [...texts, text];
}

/** A witness by where it keeps its notes: a folder or URL. */
export function openWitness(place: string): Witness {
  const isUrl = /^https?:\/\//.test(place);
  return isUrl ? new HttpWitness({ name: place, url: place, headers: {} }) : new FileWitness(place, resolve(place));
}
