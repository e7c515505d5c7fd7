import {
  BUNDLE_V03_MEDIA_TYPE,
  type Bundle,
  bundleFromJSON,
  bundleToJSON,
  isBundleWithDsseEnvelope,
  isBundleWithPublicKey,
} from "@sigstore/bundle";
import { canonicalJson } from "../kernel/canonical-json.ts";
import type { Json } from "../kernel/json.ts";
import { parseStrictJson } from "../kernel/strict-json.ts";
import { Refusal } from "./refusal.ts";
import { payloadType } from "./statement.ts";

/** What one signer left: a statement, and a signature that was not checked yet. */
export interface SignatureBundle {
  /** The key that the signer says it is; only a look-up. */
  readonly keyId: string;
  readonly payload: Buffer;
  readonly bundle: Bundle;
}

const mostSigners = 16;
const bounds = { depth: 8, nodes: 64, stringLength: 1_048_576, reader: "exact" } as const;
const newline = 0x0a;

/**
 * Reads a signature file: JSON Lines, one Sigstore bundle for each signer, 16 at most; one bundle on one line is an
 * ordinary bundle file. Every bundle must say nothing beyond what is checked, and all hold the same statement.
 */
export function readSignatureFile(bytes: Buffer): readonly [SignatureBundle, ...SignatureBundle[]] {
  const lines = splitLines(bytes);
  if (lines.length > mostSigners) throw new Refusal("bundle_malformed", `at most ${mostSigners} of them`);
  const [first, ...others] = lines.map(readBundle);
  if (first === undefined) throw new Refusal("bundle_malformed", "at least one");
  if (others.some(({ payload }) => !payload.equals(first.payload))) throw new Refusal("statement_differs");
  return [first, ...others];
}

function splitLines(bytes: Buffer): readonly Buffer[] {
  const lines: Buffer[] = [];
  for (let at = 0; at < bytes.length && lines.length <= mostSigners; ) {
    const end = bytes.indexOf(newline, at);
    lines.push(bytes.subarray(at, end === -1 ? bytes.length : end));
    at = end === -1 ? bytes.length : end + 1;
  }
  return lines;
}

function readBundle(line: Buffer, index: number): SignatureBundle {
  const where = `line ${index + 1}`;
  const bundle = parseBundle(line, where);
  // A log entry or a time stamp would claim something that nobody checks.
  const { tlogEntries, timestampVerificationData: times } = bundle.verificationMaterial;
  const unchecked = tlogEntries.length > 0 || (times?.rfc3161Timestamps.length ?? 0) > 0;
  if (bundle.mediaType !== BUNDLE_V03_MEDIA_TYPE || unchecked) throw new Refusal("bundle_malformed", where);
  if (!isBundleWithPublicKey(bundle) || !isBundleWithDsseEnvelope(bundle)) throw new Refusal("bundle_malformed", where);
  const { payload, payloadType: type, signatures } = bundle.content.dsseEnvelope;
  if (type !== payloadType) throw new Refusal("payload_type", where);
  const keyId = bundle.verificationMaterial.content.publicKey.hint;
  if (signatures.some(({ keyid }) => keyid !== "" && keyid !== keyId)) throw new Refusal("bundle_malformed", where);
  return { keyId, payload, bundle };
}

/** The library's reader skips what it does not know and bends base64: what it read must be all that was written. */
function parseBundle(line: Buffer, where: string): Bundle {
  try {
    const json = parseStrictJson(line, bounds);
    const bundle = bundleFromJSON(json);
    if (canonicalJson(bundleToJSON(bundle) as unknown as Json) === canonicalJson(json)) return bundle;
  } catch {
    // The same answer for every way in which it is none; the library's words quote the file.
  }
  throw new Refusal("bundle_malformed", where);
}
