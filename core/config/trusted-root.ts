import type { X509Certificate } from "@sigstore/core";
import { TrustedRoot } from "@sigstore/protobuf-specs";
import { toTrustMaterial } from "@sigstore/verify";
import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import { parseStrictJson } from "../action/strict-json.ts";

const bounds = { depth: 12, nodes: 8_192, stringLength: 65_536, reader: "exact" } as const;
const mediaType = /^application\/vnd\.dev\.sigstore\.trustedroot(?:\+json;version=0\.[12]|\.v0\.2\+json)$/;

/** Bytes of a TrustedRoot that is read. */
export const maxTrustedRoot = 1_048_576;

/** Reads a Sigstore TrustedRoot. Where it cannot prove identities, returns what was expected; completes "expected …". */
export function parseTrustedRoot(
  text: string,
): { readonly json: JsonObject; readonly root: TrustedRoot } | { readonly expected: string } {
  const json = parse(text);
  if (json === undefined) return { expected: "a Sigstore TrustedRoot in JSON, got something else" };
  const expected = misfitOf(json);
  return expected === undefined ? { json, root: TrustedRoot.fromJSON(json) } : { expected };
}

/** Only what has no member that the library would skip: a misspelt end of validity would be none. */
function parse(text: string): JsonObject | undefined {
  try {
    const json = parseStrictJson(Buffer.from(text), bounds);
    if (!isJsonObject(json)) return undefined;
    const root = TrustedRoot.fromJSON(json);
    toTrustMaterial(root);
    const read = TrustedRoot.toJSON(root) as Json;
    return mediaType.test(root.mediaType) && hasNoMore(json, read) ? json : undefined;
  } catch {
    return undefined;
  }
}

function hasNoMore(given: Json, read: Json | undefined): boolean {
  if (Array.isArray(given)) {
    const items = Array.isArray(read) ? (read as readonly Json[]) : [];
    return given.every((item, index) => hasNoMore(item as Json, items[index]));
  }
  if (!isJsonObject(given)) return read !== undefined;
  return isJsonObject(read) && Object.entries(given).every(([key, value]) => hasNoMore(value, memberOf(read, key)));
}

function memberOf(object: JsonObject, key: string): Json | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** Returns the reason why a trusted root cannot prove identities; completes "expected …". */
function misfitOf(json: JsonObject): string | undefined {
  const root = TrustedRoot.fromJSON(json);
  const { certificateAuthorities, timestampAuthorities, tlogs } = toTrustMaterial(root);
  const authorities = [...certificateAuthorities, ...timestampAuthorities];
  if (authorities.some(({ certChain }) => certChain.length === 0)) return "certificates in each chain, got none";
  if (authorities.some(({ certChain }) => certChain.some(hasUnreadLimit))) {
    return "authorities without a critical extension that is not read, got one";
  }
  if (!startsOf(root).every((start) => start !== undefined))
    return "a start of validity of each authority and log, got none";
  if (certificateAuthorities.length === 0) return "at least one certificate authority, got none";
  if (timestampAuthorities.length > 0 || tlogs.length > 0) return undefined;
  return "a time stamping authority or a transparency log, got neither";
}

/** Key usage, basic constraints, extended key usage. Limits on names, for one, are not held to by the library. */
const readWhereCritical: ReadonlySet<string> = new Set(["2.5.29.15", "2.5.29.19", "2.5.29.37"]);

function hasUnreadLimit({ extensions }: X509Certificate): boolean {
  return extensions.some(
    ({ subs: [name, , value] }) => value !== undefined && !readWhereCritical.has(name?.toOID() ?? ""),
  );
}

/** The library takes an authority or a log without a start for one that was always valid. */
function startsOf(root: TrustedRoot): readonly (Date | undefined)[] {
  const authorities = [...root.certificateAuthorities, ...root.timestampAuthorities].map(({ validFor }) => validFor);
  const logs = [...root.tlogs, ...root.ctlogs].map(({ publicKey }) => publicKey?.validFor);
  return [...authorities, ...logs].map((validFor) => validFor?.start);
}
