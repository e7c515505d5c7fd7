import { X509Certificate } from "node:crypto";
import type { TrustedRoot } from "@sigstore/protobuf-specs";
import { contentDigest } from "../action/canonical-json.ts";
import { parseTrustedRoot } from "../config/trusted-root.ts";

/** An authority or a log of a trusted root. */
export interface TrustedRootEntry {
  readonly kind: "certificate authority" | "time stamping authority" | "transparency log" | "certificate log";
  /** As the trusted root writes it. */
  readonly url: string;
  /** RFC 3339, milliseconds, UTC; null: no bound. */
  readonly validFrom: string | null;
  readonly validUntil: string | null;
  /** `sha256:<hex>` of the SubjectPublicKeyInfo of each key, as `revoked.keys` of a trust policy takes it. */
  readonly keys: readonly string[];
}

/** The file of a trusted root, as it was read. */
export interface TrustedRootFile {
  readonly bytes: Buffer;
  readonly entries: readonly TrustedRootEntry[];
}

/** Reads a trusted root as a gateway does, or returns what was expected; completes "expected …". */
export function readTrustedRootFile(bytes: Buffer): TrustedRootFile | { readonly expected: string } {
  const read = parseTrustedRoot(bytes.toString("utf8"));
  return "expected" in read ? read : { bytes, entries: listEntries(read.root) };
}

type Authority = TrustedRoot["certificateAuthorities"][number];
type Log = TrustedRoot["tlogs"][number];

function listEntries(root: TrustedRoot): readonly TrustedRootEntry[] {
  return [
    ...root.certificateAuthorities.map((each) => ofAuthority("certificate authority", each)),
    ...root.timestampAuthorities.map((each) => ofAuthority("time stamping authority", each)),
    ...root.tlogs.map((each) => ofLog("transparency log", each)),
    ...root.ctlogs.map((each) => ofLog("certificate log", each)),
  ];
}

/** Returns the entries of the first list that the other lacks: one whose validity changed is another entry. */
export function entriesBeside(
  entries: readonly TrustedRootEntry[],
  others: readonly TrustedRootEntry[],
): readonly TrustedRootEntry[] {
  const known = new Set(others.map((each) => JSON.stringify(each)));
  return entries.filter((each) => !known.has(JSON.stringify(each)));
}

function ofAuthority(kind: TrustedRootEntry["kind"], { uri, certChain, validFor }: Authority): TrustedRootEntry {
  const keys = (certChain?.certificates ?? []).map(({ rawBytes }) =>
    contentDigest(new X509Certificate(rawBytes).publicKey.export({ format: "der", type: "spki" })),
  );
  return { kind, url: uri, ...validityOf(validFor), keys };
}

function ofLog(kind: TrustedRootEntry["kind"], { baseUrl, publicKey }: Log): TrustedRootEntry {
  const { rawBytes } = publicKey ?? {};
  const keys = rawBytes === undefined ? [] : [contentDigest(rawBytes)];
  return { kind, url: baseUrl, ...validityOf(publicKey?.validFor), keys };
}

function validityOf(
  validFor: { readonly start?: Date | undefined; readonly end?: Date | undefined } | undefined,
): Pick<TrustedRootEntry, "validFrom" | "validUntil"> {
  return { validFrom: validFor?.start?.toISOString() ?? null, validUntil: validFor?.end?.toISOString() ?? null };
}
