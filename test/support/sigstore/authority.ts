import { generateKeyPairSync, type KeyObject, sign, X509Certificate } from "node:crypto";
import { bits, der, integer, octets, oid, sequence, serialNumber, set, tagged, truth, utcTime, utf8 } from "./der.ts";
import type { Log } from "./log.ts";

export const ecdsaWithSha256: Buffer = sequence(oid("1.2.840.10045.4.3.2"));
export const codeSigning = "1.3.6.1.5.5.7.3.3";
export const timeStamping = "1.3.6.1.5.5.7.3.8";

export interface Validity {
  readonly from: Date;
  readonly to: Date;
}

const always: Validity = { from: new Date("2020-01-01T00:00:00Z"), to: new Date("2049-01-01T00:00:00Z") };

export function makeKeys(): { readonly publicKey: KeyObject; readonly privateKey: KeyObject } {
  return generateKeyPairSync("ec", { namedCurve: "prime256v1" });
}

/** What an authority certifies. */
export interface Subject {
  readonly name: string;
  readonly publicKey: KeyObject;
  readonly validity?: Validity;
  readonly extensions: readonly Buffer[];
  /** Gives a receipt (RFC 6962) for the certificate before it is signed. */
  readonly certificateLog?: Pick<Log, "receipt"> | undefined;
}

/** A certificate authority with a key of its own. */
export class Authority {
  /** Its own certificate, then those above it. */
  readonly chain: readonly Buffer[];
  readonly #name: string;
  readonly #key: KeyObject;
  readonly #spki: Buffer;

  /** A root, or below `parent`. */
  constructor(name: string, parent?: Authority, extensions: readonly Buffer[] = []) {
    const { publicKey, privateKey } = makeKeys();
    this.#name = name;
    this.#key = privateKey;
    this.#spki = publicKey.export({ format: "der", type: "spki" });
    const ca = extension("2.5.29.19", sequence(truth()), true);
    const keyCertSign = extension("2.5.29.15", der(0x03, Uint8Array.of(2, 0x04)), true);
    const subject = { name, publicKey, extensions: [ca, keyCertSign, ...extensions] };
    this.chain = [(parent ?? this).certify(subject), ...(parent?.chain ?? [])];
  }

  /** The DER of a certificate; the engine reads it too, so that no test rests on our DER alone. */
  certify({ name, publicKey, validity = always, extensions, certificateLog }: Subject): Buffer {
    const serial = serialNumber();
    const bodyWith = (more: readonly Buffer[]): Buffer =>
      sequence(
        tagged(0, integer(2)),
        serial,
        ecdsaWithSha256,
        nameOf(this.#name),
        sequence(utcTime(validity.from), utcTime(validity.to)),
        nameOf(name),
        publicKey.export({ format: "der", type: "spki" }),
        tagged(3, sequence(...extensions, ...more)),
      );
    const receipt = certificateLog?.receipt(this.#spki, bodyWith([]), validity.from);
    const body = bodyWith(receipt === undefined ? [] : [extension("1.3.6.1.4.1.11129.2.4.2", octets(receipt))]);
    const certificate = sequence(body, ecdsaWithSha256, bits(sign("sha256", body, this.#key)));
    return new X509Certificate(certificate).raw;
  }
}

/** One extension of a certificate. */
export function extension(name: string, value: Uint8Array, critical = false): Buffer {
  return sequence(oid(name), ...(critical ? [truth()] : []), octets(value));
}

export function extendedKeyUsage(...usages: readonly string[]): Buffer {
  return extension("2.5.29.37", sequence(...usages.map(oid)), usages.includes(timeStamping));
}

function nameOf(name: string): Buffer {
  return sequence(set(sequence(oid("2.5.4.3"), utf8(name))));
}
