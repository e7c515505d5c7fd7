import { type KeyObject, sign, verify } from "node:crypto";
import { canonicalJson } from "../action/canonical-json.ts";
import { GatewayError } from "../action/error.ts";
import { isJsonObject, type Json } from "../action/json.ts";
import { decodeBase64url, encodeBase64url, splitJws } from "../action/signing-key.ts";
import { parseStrictJson } from "../action/strict-json.ts";

/** The claims of a reference: the sessions of `principal` may use this manifest until `exp`. */
export interface TaskClaims {
  readonly tenant: string;
  /** The id of a key or of its principal. */
  readonly principal: string;
  readonly task: string;
  /** The digest of the manifest. */
  readonly manifest: string;
  /** Whole seconds since 1970. */
  readonly exp: number;
}

/** A key that may sign references for one tenant. */
export interface TaskSigner {
  readonly id: string;
  readonly tenant: string;
  /** Ed25519. */
  readonly key: KeyObject;
}

/** The claims of a valid reference, and the id of its signer. */
interface VerifiedReference {
  readonly claims: TaskClaims;
  readonly signer: string;
}

/** The only header that is accepted, byte for byte: a token never chooses its algorithm. */
const header = encodeBase64url('{"alg":"EdDSA","typ":"gateway-task+jwt"}');
const maxToken = 4_096;
const bounds = { depth: 1, nodes: 16, stringLength: 1_024, reader: "exact" } as const;
const maxLifeSeconds = 31 * 86_400;

/** Returns a compact JWS, signed with an Ed25519 private key. */
export function signReference(claims: TaskClaims, key: KeyObject): string {
  const signed = `${header}.${encodeBase64url(canonicalJson({ ...claims }))}`;
  return `${signed}.${sign(null, Buffer.from(signed), key).toString("base64url")}`;
}

/**
 * Verifies a reference in a request of `tenant` at a time (milliseconds since 1970). Throws TASK_REFERENCE unless a signer
 * of that tenant signed it for that tenant, and it is neither expired nor valid for longer than 31 days.
 */
export function readReference(
  token: string,
  signers: readonly TaskSigner[],
  tenant: string,
  now: number,
): VerifiedReference {
  const jws = splitJws(token, maxToken);
  if (jws?.header !== header) throw invalidReference("expected a signed token of type `gateway-task+jwt`");
  const { signed, signature, payload } = jws;
  const signer = signers.find(
    (each) => each.tenant === tenant && verify(null, Buffer.from(signed), each.key, signature),
  );
  if (signer === undefined) throw invalidReference("expected a signature by a task signer of this tenant");
  const claims = readClaims(decodeBase64url(payload));
  if (claims.tenant !== tenant) throw invalidReference("it is for another tenant");
  const left = claims.exp - now / 1_000;
  if (left <= 0) throw invalidReference("it is expired");
  if (left > maxLifeSeconds) throw invalidReference("expected it to expire within 31 days");
  return { claims, signer: signer.id };
}

function readClaims(bytes: Buffer | undefined): TaskClaims {
  if (bytes === undefined) throw invalidReference("expected base64url");
  let claims: Json;
  try {
    claims = parseStrictJson(bytes, bounds);
  } catch (cause) {
    throw invalidReference("expected its claims to be JSON", cause);
  }
  if (!isJsonObject(claims) || Object.keys(claims).length !== 5) throw invalidReference(expectedClaims);
  const { tenant, principal, task, manifest, exp } = claims;
  if (![tenant, principal, task, manifest].every((each) => typeof each === "string"))
    throw invalidReference(expectedClaims);
  if (!Number.isSafeInteger(exp)) throw invalidReference(expectedClaims);
  return claims as unknown as TaskClaims;
}

const expectedClaims = "expected the claims `tenant`, `principal`, `task`, `manifest` and `exp`, and no other";

/** `detail` quotes nothing of the token. */
export function invalidReference(detail: string, cause?: unknown): GatewayError {
  return new GatewayError("TASK_REFERENCE", detail, { cause });
}
