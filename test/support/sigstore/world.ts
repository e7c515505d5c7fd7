import { type KeyObject, sign } from "node:crypto";
import { bundleToJSON, toDSSEBundle } from "@sigstore/bundle";
import { dsse } from "@sigstore/core";
import { payloadType } from "../../../core/trust/statement.ts";
import { Authority, codeSigning, extendedKeyUsage, extension, makeKeys, type Validity } from "./authority.ts";
import { der, sequence, utf8 } from "./der.ts";
import { Log, type Logged } from "./log.ts";
import { TimeAuthority } from "./time-authority.ts";

export const issuer = "https://id.example";
export const subject = "https://ci.example/team/release/main";
export const signedAt: Date = new Date("2026-03-01T12:00:00Z");

const issuerForms = { bare: "1.3.6.1.4.1.57264.1.1", wrapped: "1.3.6.1.4.1.57264.1.8" } as const;
const nameTags = { email: 0x81, dns: 0x82, uri: 0x86 } as const;

/** How a signature comes about; without a word, properly. */
export interface Signing {
  readonly kind?: keyof typeof nameTags;
  readonly subject?: string;
  /** More names in the same certificate. */
  readonly alsoNamed?: string;
  readonly issuer?: string;
  /** The issuer in the other of its two places. */
  readonly wrappedIssuer?: string | null;
  readonly usages?: readonly string[];
  readonly extensions?: readonly Buffer[];
  readonly validity?: Validity;
  readonly keys?: { readonly publicKey: KeyObject; readonly privateKey: KeyObject };
  readonly authority?: Authority;
  readonly timeAuthority?: TimeAuthority | null;
  /** What is signed in place of the payload. */
  readonly over?: Buffer;
  /** What the time stamp is of, in place of the signature. */
  readonly stamped?: Uint8Array;
  readonly log?: Log | null;
  readonly promised?: boolean;
  /** The version of the log's entries. */
  readonly rekor?: 1 | 2;
  /** What the log is told of in place of the signature. */
  readonly logged?: Partial<Logged>;
  /** A second time stamp. */
  readonly alsoStampedAt?: Date;
  /** Knows the certificate. */
  readonly certificateLog?: Log;
  readonly at?: Date;
}

/** What a TrustedRoot says otherwise. */
export interface RootChange {
  readonly authorityValidFor?: { readonly start: string; readonly end?: string };
  readonly logValidFor?: { readonly start?: string; readonly end?: string };
  readonly timeAuthorityValidFor?: { readonly start: string; readonly end?: string };
  readonly authorities?: readonly Authority[];
  readonly timeAuthorities?: readonly TimeAuthority[];
  readonly logs?: readonly Log[];
  readonly certificateLogs?: readonly Log[];
}

/** An identity provider's certificate authority, a time stamping authority and a log, and who signs with them. */
export class SigstoreWorld {
  readonly authority: Authority = new Authority("ci authority");
  readonly timeAuthority: TimeAuthority = new TimeAuthority("ci time");
  readonly log: Log = new Log("log.example");

  /** The JSON of a TrustedRoot with the two authorities, without a log. */
  trustedRoot(change: RootChange = {}): string {
    const start = "2020-01-01T00:00:00.000Z";
    const {
      authorities = [this.authority],
      timeAuthorities = [this.timeAuthority],
      logs = [],
      certificateLogs = [],
    } = change;
    const tell = (chain: readonly Buffer[], validFor: object): object => ({
      subject: { organization: "example", commonName: "example" },
      uri: "https://ci.example",
      certChain: { certificates: chain.map((raw) => ({ rawBytes: raw.toString("base64") })) },
      validFor,
    });
    const tellLog = (log: Log): object => tellOfLog(log, change.logValidFor ?? { start });
    return JSON.stringify({
      mediaType: "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
      tlogs: logs.map(tellLog),
      certificateAuthorities: authorities.map(({ chain }) => tell(chain, change.authorityValidFor ?? { start })),
      ctlogs: certificateLogs.map(tellLog),
      timestampAuthorities: timeAuthorities.map(({ chain }) => tell(chain, change.timeAuthorityValidFor ?? { start })),
    });
  }

  /** One line of a signature file, by somebody with a certificate. */
  sign(payload: Buffer, how: Signing = {}): string {
    const { at = signedAt, timeAuthority = this.timeAuthority, log = null, keys = makeKeys() } = how;
    const certificate = this.certify(keys.publicKey, how);
    const signature = sign("sha256", dsse.preAuthEncoding(payloadType, how.over ?? payload), keys.privateKey);
    const bundle = toDSSEBundle({ artifact: payload, artifactType: payloadType, signature, certificate });
    if (timeAuthority !== null) {
      const signedTimestamp = timeAuthority.stamp(how.stamped ?? signature, at);
      const more = how.alsoStampedAt === undefined ? [] : [timeAuthority.stamp(signature, how.alsoStampedAt)];
      const rfc3161Timestamps = [signedTimestamp, ...more].map((each) => ({ signedTimestamp: each }));
      bundle.verificationMaterial.timestampVerificationData = { rfc3161Timestamps };
    }
    const logged = { payload, signature, certificate, ...how.logged };
    const entry = log?.enter(logged, at, how.promised, how.rekor);
    if (entry !== undefined) bundle.verificationMaterial.tlogEntries = [entry];
    return `${JSON.stringify(bundleToJSON(bundle))}\n`;
  }

  certify(publicKey: KeyObject, how: Signing): Buffer {
    const { at = signedAt, authority = this.authority, usages = [codeSigning] } = how;
    const minutes = (count: number): Date => new Date(at.getTime() + count * 60_000);
    const validity = how.validity ?? { from: minutes(-5), to: minutes(5) };
    const named = [how.subject ?? subject, ...(how.alsoNamed === undefined ? [] : [how.alsoNamed])];
    const names = named.map((name) => der(nameTags[how.kind ?? "uri"], Buffer.from(name)));
    const bare = how.issuer ?? issuer;
    const wrapped = how.wrappedIssuer === undefined ? bare : how.wrappedIssuer;
    const extensions = [
      extension("2.5.29.17", sequence(...names), true),
      ...(usages.length === 0 ? [] : [extendedKeyUsage(...usages)]),
      extension(issuerForms.bare, Buffer.from(bare)),
      ...(wrapped === null ? [] : [extension(issuerForms.wrapped, utf8(wrapped))]),
      ...(how.extensions ?? []),
    ];
    return authority.certify({ name: "signer", publicKey, validity, extensions, certificateLog: how.certificateLog });
  }
}

function tellOfLog({ host, spki, id }: Log, validFor: object): object {
  return {
    baseUrl: `https://${host}`,
    hashAlgorithm: "SHA2_256",
    publicKey: { rawBytes: spki.toString("base64"), keyDetails: "PKIX_ECDSA_P256_SHA_256", validFor },
    logId: { keyId: id.toString("base64") },
  };
}
