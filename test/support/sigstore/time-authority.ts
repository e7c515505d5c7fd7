import { createHash, type KeyObject, sign } from "node:crypto";
import { X509Certificate } from "@sigstore/core";
import { Authority, ecdsaWithSha256, extendedKeyUsage, makeKeys, timeStamping } from "./authority.ts";
import { der, generalizedTime, integer, octets, oid, sequence, serialNumber, set, tagged } from "./der.ts";

const sha256 = sequence(oid("2.16.840.1.101.3.4.2.1"));
const signedData = oid("1.2.840.113549.1.7.2");
const tstInfo = oid("1.2.840.113549.1.9.16.1.4");
const contentType = oid("1.2.840.113549.1.9.3");
const messageDigest = oid("1.2.840.113549.1.9.4");

/** An authority that says, as RFC 3161 has it, when it saw some bytes. */
export class TimeAuthority {
  /** Its own certificate, then the one above it. */
  readonly chain: readonly Buffer[];
  readonly #key: KeyObject;
  readonly #own: X509Certificate;

  constructor(name: string) {
    const root = new Authority(`${name} root`);
    const { publicKey, privateKey } = makeKeys();
    this.#key = privateKey;
    const leaf = root.certify({ name, publicKey, extensions: [extendedKeyUsage(timeStamping)] });
    this.chain = [leaf, ...root.chain];
    this.#own = X509Certificate.parse(Buffer.from(leaf));
  }

  /** The DER of a TimeStampResp. */
  stamp(bytes: Uint8Array, at: Date): Buffer {
    return this.stampDigest(digest(bytes), at);
  }

  /** The same for the SHA-256 of some bytes. */
  stampDigest(sha256OfBytes: Uint8Array, at: Date): Buffer {
    const info = sequence(
      integer(1),
      oid("1.2.3.4.1"),
      sequence(sha256, octets(sha256OfBytes)),
      serialNumber(),
      generalizedTime(at),
    );
    const attributes = [sequence(contentType, set(tstInfo)), sequence(messageDigest, set(octets(digest(info))))];
    const signer = sequence(
      integer(1),
      sequence(sequence(this.#own.issuer), der(0x02, this.#own.serialNumber)),
      sha256,
      tagged(0, ...attributes),
      ecdsaWithSha256,
      octets(sign("sha256", set(...attributes), this.#key)),
    );
    const content = sequence(tstInfo, tagged(0, octets(info)));
    const token = sequence(signedData, tagged(0, sequence(integer(3), set(sha256), content, set(signer))));
    return sequence(sequence(integer(0)), token);
  }
}

function digest(bytes: Uint8Array): Buffer {
  return createHash("sha256").update(bytes).digest();
}
