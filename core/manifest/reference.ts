import { type KeyObject, sign, verify } from "node:crypto";
import { canonicalJson } from "../action/canonical-json.ts";
import { GatewayError } from "../action/error.ts";
import { isJsonObject, type Json } from "../action/json.ts";
import { decodeBase64url, encodeBase64url, splitJws } from "../action/signing-key.ts";
import { parseStrictJson } from "../action/strict-json.ts";

/** What a reference says: whose sessions may name which manifest as theirs, and until when. */
export interface TaskClaims {
  readonly tenant: string;
  /** The id of a key, or of the principal it stands for. */
  readonly principal: string;
  readonly task: string;
  /** The digest of the manifest. */
  readonly manifest: string;
  /** Whole seconds since 1970. */
  readonly exp: number;
}

/** Whose signature counts, and in which tenant. */
export interface TaskSigner {
  readonly id: string;
  readonly tenant: string;
  /** Ed25519. */
  readonly key: KeyObject;
}

/** A reference that is good: who signed it. */
interface VerifiedReference {
  readonly claims: TaskClaims;
  readonly signer: string;
}

/** The one header there is. Whoever writes it otherwise is refused: no other algorithm is ever looked for. */
const header = encodeBase64url('{"alg":"EdDSA","typ":"gateway-task+jwt"}');
const maxToken = 4_096;
const bounds = { depth: 1, nodes: 16, stringLength: 1_024, reader: "exact" } as const;
const maxLifeSeconds = 31 * 86_400;

/** A JWS in its compact form, signed with an Ed25519 private key. */
export function signReference(claims: TaskClaims, key: KeyObject): string {
  const signed = `${header}.${encodeBase64url(canonicalJson({ ...claims }))}`;
  return `${signed}.${sign(null, Buffer.from(signed), key).toString("base64url")}`;
}

/**
 * Reads a reference that came with a request of `tenant`, at a time (milliseconds since 1970). Throws TASK_REFERENCE
 * unless a signer of that tenant signed it for that tenant, and it is neither over nor good for longer than 31 days.
 */
export function readReference(
  token: string,
  signers: readonly TaskSigner[],
  tenant: string,
  now: number,
): VerifiedReference {
  const jws = splitJws(token, maxToken);
  if (jws?.header !== header) throw refused("expected a signed token of type `gateway-task+jwt`");
  const { signed, signature, payload } = jws;
  const signer = signers.find(
    (each) => each.tenant === tenant && verify(null, Buffer.from(signed), each.key, signature),
  );
  if (signer === undefined) throw refused("nobody who may sign for this tenant signed it");
  const claims = readClaims(decodeBase64url(payload));
  if (claims.tenant !== tenant) throw refused("it is for another tenant");
  const left = claims.exp - now / 1_000;
  if (left <= 0) throw refused("it is expired");
  if (left > maxLifeSeconds) throw refused("expected it to expire within 31 days");
  return { claims, signer: signer.id };
}

function readClaims(bytes: Buffer | undefined): TaskClaims {
  if (bytes === undefined) throw refused("expected base64url");
  let claims: Json;
  try {
    claims = parseStrictJson(bytes, bounds);
  } catch (cause) {
    throw refused("expected its claims to be JSON", cause);
  }
  if (!isJsonObject(claims) || Object.keys(claims).length !== 5) throw refused(expectedClaims);
  const { tenant, principal, task, manifest, exp } = claims;
  if (![tenant, principal, task, manifest].every((each) => typeof each === "string")) throw refused(expectedClaims);
  if (!Number.isSafeInteger(exp)) throw refused(expectedClaims);
  return claims as unknown as TaskClaims;
}

const expectedClaims = "expected the claims `tenant`, `principal`, `task`, `manifest` and `exp`, and no other";

/** Nothing of the token is told. */
export function refused(detail: string, cause?: unknown): GatewayError {
  return new GatewayError("TASK_REFERENCE", detail, { cause });
}
