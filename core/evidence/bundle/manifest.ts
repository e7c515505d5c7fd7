import { canonicalJson } from "../../kernel/canonical-json.ts";
import type { Json } from "../../kernel/json.ts";
import type { SigningKey } from "../signing-key.ts";
import { Breach } from "./breach.ts";
import { readBase64, readCanonicalJson } from "./canonical-file.ts";
import { exactly, listOf, matching, objectWith, type Shape, text, time } from "./shape.ts";

/** The name of the manifest's shape. A reader refuses any other. */
export const bundleSchema = "evidence-bundle-v1";
export const manifestFile = "manifest.json";
const payloadType = "application/vnd.agent-governance-gateway.evidence-manifest+json";

/** What a bundle says of itself, signed by the tenant's key. */
export interface Manifest {
  readonly schema: typeof bundleSchema;
  readonly tenant: string;
  readonly chain: string;
  readonly session: string;
  /** RFC 3339 time of the export; every record after the checkpoint is younger. */
  readonly created: string;
  /** SHA-256 (hex) of every other file. */
  readonly files: Readonly<Record<string, string>>;
}

/** A manifest as it was read, with the signature that is still to be checked. */
export interface SignedManifest {
  readonly manifest: Manifest;
  readonly keyId: string;
  readonly signature: Buffer;
  /** What the signature covers: DSSE's pre-authentication encoding. */
  readonly signed: Buffer;
}

/** The manifest as a DSSE envelope. */
export function signManifest(manifest: Manifest, key: SigningKey): string {
  const payload = Buffer.from(canonicalJson(manifest as unknown as Json));
  const sig = key.sign(preAuthentication(payload)).toString("base64");
  return canonicalJson({ payload: payload.toString("base64"), payloadType, signatures: [{ keyid: key.id, sig }] });
}

/** Reads the envelope and what is in it; checks no signature. Throws Breach. */
export function readManifest(bytes: Uint8Array): SignedManifest {
  const place = { file: manifestFile };
  const { payload, signatures } = readCanonicalJson<Envelope>(bytes, manifestFile, envelopeShape);
  const [first, ...more] = signatures;
  if (first === undefined || more.length > 0) throw new Breach("bad_schema", place);
  const content = readBase64(payload, place);
  const manifest = readCanonicalJson<Manifest>(content, manifestFile, manifestShape);
  const { keyid, sig } = first;
  return { manifest, keyId: keyid, signature: Buffer.from(sig, "base64"), signed: preAuthentication(content) };
}

/** DSSE's pre-authentication encoding: type and payload, each with its length, so that none can pass for the other. */
function preAuthentication(payload: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`DSSEv1 ${payloadType.length} ${payloadType} ${payload.length} `), payload]);
}

interface Envelope {
  readonly payload: string;
  readonly signatures: readonly { readonly keyid: string; readonly sig: string }[];
}

/** 64 bytes in base64. */
const signature = matching(/^[A-Za-z0-9+/]{85}[AQgw]==$/);

const envelopeShape: Shape = objectWith({
  payload: text,
  payloadType: exactly(payloadType),
  signatures: listOf(objectWith({ keyid: text, sig: signature })),
});

/** `files` is compared whole with what it must be. */
const manifestShape: Shape = objectWith({
  schema: exactly(bundleSchema),
  tenant: text,
  chain: text,
  session: text,
  created: time,
  files: objectWith({}),
});
