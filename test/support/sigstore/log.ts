import { createHash, randomBytes, sign } from "node:crypto";
import type { Bundle } from "@sigstore/bundle";
import { canonicalJson } from "../../../core/action/canonical-json.ts";
import { makeKeys } from "./authority.ts";

type Entry = Bundle["verificationMaterial"]["tlogEntries"][number];

/** What a log is told of: one DSSE envelope and who signed it. */
export interface Logged {
  readonly payload: Uint8Array;
  readonly signature: Uint8Array;
  readonly certificate: Uint8Array;
}

/** A transparency log: it promises to hold an entry, and proves that it does. */
export class Log {
  readonly host: string;
  readonly spki: Buffer;
  readonly id: Buffer;
  readonly #sign: (bytes: Uint8Array) => Buffer;

  constructor(host: string) {
    const { publicKey, privateKey } = makeKeys();
    this.host = host;
    this.spki = publicKey.export({ format: "der", type: "spki" });
    this.id = hash(this.spki);
    this.#sign = (bytes) => sign("sha256", bytes, privateKey);
  }

  /** The entry, first of two in the log. Without a promise it has no time; Rekor v2 promises nothing. */
  enter(logged: Logged, at: Date, isPromised = true, rekor: 1 | 2 = 1): Entry {
    const promised = isPromised && rekor === 1;
    const body = Buffer.from(canonicalJson(rekor === 1 ? bodyOf(logged) : secondBodyOf(logged)));
    const [integratedTime, logIndex] = [at.getTime() / 1000, 0];
    const promise = canonicalJson({
      body: body.toString("base64"),
      integratedTime,
      logIndex,
      logID: this.id.toString("hex"),
    });
    const [leaf, sibling] = [hash(Buffer.from([0]), body), randomBytes(32)];
    const rootHash = hash(Buffer.from([1]), leaf, sibling);
    const checkpoint = { envelope: this.#checkpoint(2, rootHash) };
    const inclusionProof = { logIndex: "0", rootHash, treeSize: "2", hashes: [sibling], checkpoint };
    return {
      logIndex: String(logIndex),
      logId: { keyId: this.id },
      kindVersion: { kind: "dsse", version: `0.0.${rekor}` },
      integratedTime: promised ? String(integratedTime) : "0",
      inclusionPromise: promised ? { signedEntryTimestamp: this.#sign(Buffer.from(promise)) } : undefined,
      inclusionProof,
      canonicalizedBody: body,
    } as Entry;
  }

  /** The list of one receipt (SCT) for a certificate of this issuer, which has everything but the receipt. */
  receipt(issuerSpki: Uint8Array, body: Uint8Array, at: Date): Buffer {
    const head = Buffer.concat([Uint8Array.of(0, 0), number(at.getTime(), 8), number(1, 2)]);
    const signed = Buffer.concat([head, hash(issuerSpki), number(body.length, 3), body, number(0, 2)]);
    const signature = this.#sign(signed);
    const ecdsaWithSha256 = Uint8Array.of(4, 3);
    const tail = [number(0, 2), ecdsaWithSha256, number(signature.length, 2), signature];
    const receipt = Buffer.concat([Uint8Array.of(0), this.id, number(at.getTime(), 8), ...tail]);
    return Buffer.concat([number(receipt.length + 2, 2), number(receipt.length, 2), receipt]);
  }

  #checkpoint(size: number, root: Buffer): string {
    const note = `${this.host}\n${size}\n${root.toString("base64")}\n`;
    const signature = Buffer.concat([this.id.subarray(0, 4), this.#sign(Buffer.from(note))]);
    return `${note}\n\u2014 ${this.host} ${signature.toString("base64")}\n`;
  }
}

function bodyOf({ payload, signature, certificate }: Logged): Parameters<typeof canonicalJson>[0] {
  const verifier = Buffer.from(certificate).toString("base64");
  return {
    apiVersion: "0.0.1",
    kind: "dsse",
    spec: {
      payloadHash: { algorithm: "sha256", value: hash(payload).toString("hex") },
      signatures: [{ signature: Buffer.from(signature).toString("base64"), verifier }],
    },
  };
}

/** The body as Rekor v2 writes it. */
function secondBodyOf({ payload, signature, certificate }: Logged): Parameters<typeof canonicalJson>[0] {
  const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");
  const verifier = { keyDetails: "PKIX_ECDSA_P256_SHA_256", x509Certificate: { rawBytes: base64(certificate) } };
  const payloadHash = { algorithm: "SHA2_256", digest: base64(hash(payload)) };
  const spec = { dsseV002: { payloadHash, signatures: [{ content: base64(signature), verifier }] } };
  return { apiVersion: "0.0.2", kind: "dsse", spec };
}

function number(value: number, bytes: number): Buffer {
  const buffer = Buffer.alloc(8);
  buffer.writeBigUInt64BE(BigInt(value));
  return buffer.subarray(8 - bytes);
}

function hash(...parts: readonly Uint8Array[]): Buffer {
  return createHash("sha256").update(Buffer.concat(parts)).digest();
}
