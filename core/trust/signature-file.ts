import {
  BUNDLE_V03_MEDIA_TYPE,
  type Bundle,
  type BundleWithDsseEnvelope,
  bundleFromJSON,
  bundleToJSON,
  isBundleWithDsseEnvelope,
} from "@sigstore/bundle";
import { canonicalJson } from "../action/canonical-json.ts";
import type { Json } from "../action/json.ts";
import { parseStrictJson } from "../action/strict-json.ts";
import { readCertificate, type SignerCertificate } from "./identity.ts";
import { TrustRefusalError } from "./refusal.ts";
import { payloadType } from "./statement.ts";

/** One signer's statement and signature, not verified yet. */
export interface SignatureBundle {
  /** The id of the key that the signer claims; used for look-up only. */
  readonly keyId: string;
  /** The certificate of the key; null where the trust policy names the key. */
  readonly certificate: SignerCertificate | null;
  readonly payload: Buffer;
  readonly bundle: Bundle;
}

const maxSigners = 16;
const bounds = { depth: 10, nodes: 512, stringLength: 1_048_576, reader: "exact" } as const;
const newline = 0x0a;

/**
 * Reads a signature file: JSON Lines, one Sigstore bundle per signer, at most 16; a file with one bundle on one line is
 * an ordinary bundle. Refuses bundles with members that are not checked, and bundles of different statements.
 */
export function readSignatureFile(bytes: Buffer): readonly [SignatureBundle, ...SignatureBundle[]] {
  const lines = splitLines(bytes);
  if (lines.length > maxSigners) throw new TrustRefusalError("bundle_malformed", `at most ${maxSigners} of them`);
  const [first, ...others] = lines.map((line, index) => readSignatureBundle(line, `line ${index + 1}`));
  if (first === undefined) throw new TrustRefusalError("bundle_malformed", "at least one");
  if (others.some(({ payload }) => !payload.equals(first.payload))) throw new TrustRefusalError("statement_differs");
  return [first, ...others];
}

/**
 * Converts a bundle written by another tool, in any layout, to one line of a signature file with its newline. Returns
 * undefined for anything but a bundle; verifies nothing.
 */
export function toSignatureLine(text: string): string | undefined {
  try {
    return `${JSON.stringify(bundleToJSON(bundleFromJSON(JSON.parse(text))))}\n`;
  } catch {
    return undefined;
  }
}

function splitLines(bytes: Buffer): readonly Buffer[] {
  const lines: Buffer[] = [];
  for (let at = 0; at < bytes.length && lines.length <= maxSigners; ) {
    const end = bytes.indexOf(newline, at);
    lines.push(bytes.subarray(at, end === -1 ? bytes.length : end));
    at = end === -1 ? bytes.length : end + 1;
  }
  return lines;
}

/** Reads one bundle around an in-toto statement; `where` names it in a refusal. Throws TrustRefusalError. */
export function readSignatureBundle(bytes: Buffer, where: string): SignatureBundle {
  const bundle = parseBundle(bytes, where);
  if (bundle.mediaType !== BUNDLE_V03_MEDIA_TYPE || !isBundleWithDsseEnvelope(bundle)) {
    throw new TrustRefusalError("bundle_malformed", where);
  }
  const { payload, payloadType: type, signatures } = bundle.content.dsseEnvelope;
  if (type !== payloadType) throw new TrustRefusalError("payload_type", where);
  const signer = readSigner(bundle);
  if (signer === undefined || signatures.some(({ keyid }) => keyid !== "" && keyid !== signer.keyId)) {
    throw new TrustRefusalError("bundle_malformed", where);
  }
  return { ...signer, payload, bundle };
}

type Signer = Pick<SignatureBundle, "keyId" | "certificate">;

/** Returns undefined where the bundle brings a proof that is not checked here. */
function readSigner(bundle: BundleWithDsseEnvelope): Signer | undefined {
  const { content } = bundle.verificationMaterial;
  if (content.$case === "publicKey") {
    return hasProofs(bundle) ? undefined : { keyId: content.publicKey.hint, certificate: null };
  }
  if (content.$case !== "certificate" || !areBounded(bundle)) return undefined;
  const certificate = readCertificate(Buffer.from(content.certificate.rawBytes));
  return { keyId: certificate.keyId, certificate };
}

/**
 * Reads a bundle and refuses everything the library would ignore: it skips unknown members and accepts irregular
 * base64.
 */
function parseBundle(line: Buffer, where: string): Bundle {
  try {
    const json = parseStrictJson(line, bounds);
    const bundle = bundleFromJSON(json);
    if (canonicalJson(bundleToJSON(bundle) as unknown as Json) === canonicalJson(json)) return bundle;
  } catch {
    // The same refusal for every malformed bundle; the library's messages quote the file.
  }
  throw new TrustRefusalError("bundle_malformed", where);
}

const maxProofs = 4;
const maxBytes = 16_384;
const maxEntryBytes = 65_536;
/** The library uses this name as a regular expression; these characters have no special meaning there. */
const plainOrigin = /^[A-Za-z0-9._:/-]{1,256}$/;
const checkpointSigner = /\u2014 (\S+) /g;

/** Returns true where a bundle has a time stamp or a log entry. */
function hasProofs({ verificationMaterial: { tlogEntries, timestampVerificationData } }: Bundle): boolean {
  return tlogEntries.length > 0 || (timestampVerificationData?.rfc3161Timestamps.length ?? 0) > 0;
}

/** Returns true where time stamps and log entries are few and small enough to be verified. */
function areBounded({ verificationMaterial: { tlogEntries, timestampVerificationData } }: Bundle): boolean {
  const stamps = timestampVerificationData?.rfc3161Timestamps ?? [];
  if (stamps.length > maxProofs || tlogEntries.length > maxProofs) return false;
  return stamps.every(({ signedTimestamp }) => signedTimestamp.length <= maxBytes) && tlogEntries.every(isBounded);
}

function isBounded({ canonicalizedBody, inclusionProof }: Entry): boolean {
  const note = inclusionProof?.checkpoint?.envelope ?? "";
  if (canonicalizedBody.length > maxEntryBytes || note.length > maxBytes) return false;
  return Array.from(note.matchAll(checkpointSigner)).every(([, name]) => name !== undefined && plainOrigin.test(name));
}

type Entry = Bundle["verificationMaterial"]["tlogEntries"][number];
