import { attest, InternalError } from "sigstore";
import { GatewayError } from "../action/error.ts";
import { payloadType } from "../trust/statement.ts";

/** The services that a keyless signature needs, as URLs. */
export interface KeylessServices {
  /** Issues the certificate. */
  readonly fulcio: string;
  /** Makes an entry in its log; undefined for none. */
  readonly rekor: string | undefined;
  /** Stamps the time; undefined for none. */
  readonly tsa: string | undefined;
}

/** Logs of Rekor v2 have another address for entries, to which `attest` of sigstore 4 does not write. */
const noRekorV2 =
  "; a log of Rekor v2 is verified, but not written to yet: leave `--rekor` out and prove the time with `--tsa`";

/** For each request, which is sent twice at most. */
const options = { timeout: 30_000, retry: 1 } as const;

/**
 * Signs a statement with a key that exists for this one signature and a certificate for the identity of this build: of a
 * build's ambient OIDC token, or the one in SIGSTORE_ID_TOKEN. Returns one line of a signature file with its newline; it is not
 * verified, since no trusted root is at hand. Throws SIGNING_FAILED, which names the service and never the token.
 */
export async function signKeyless(payload: Buffer, services: KeylessServices): Promise<string> {
  const { fulcio, rekor, tsa } = services;
  const witnesses = { tlogUpload: rekor !== undefined, ...(tsa === undefined ? {} : { tsaServerURL: tsa }) };
  const log = rekor === undefined ? {} : { rekorURL: rekor };
  try {
    const bundle = await attest(payload, payloadType, { ...options, fulcioURL: fulcio, ...log, ...witnesses });
    return `${JSON.stringify(bundle)}\n`;
  } catch (cause) {
    // The library's messages quote the token and what services answer.
    throw new GatewayError("SIGNING_FAILED", describeFailure(cause, services));
  }
}

function describeFailure(cause: unknown, { fulcio, rekor, tsa }: KeylessServices): string {
  const reason = cause instanceof InternalError ? reasonOf(cause.cause) : "an invalid answer";
  switch (cause instanceof InternalError ? cause.code : undefined) {
    case "IDENTITY_TOKEN_READ_ERROR":
      return "expected an identity token, of a build that may ask for one or in SIGSTORE_ID_TOKEN, got none";
    case "IDENTITY_TOKEN_PARSE_ERROR":
      return "expected an identity token that is a JWT with a subject, got something else";
    case "CA_CREATE_SIGNING_CERTIFICATE_ERROR":
      return `expected a certificate of \`${fulcio}\`, got ${reason}`;
    case "TLOG_CREATE_ENTRY_ERROR":
      return `expected a log entry of \`${rekor}\`, got ${reason}${reason === "HTTP 404" ? noRekorV2 : ""}`;
    case "TSA_CREATE_TIMESTAMP_ERROR":
      return `expected a time stamp of \`${tsa}\`, got ${reason}`;
    default:
      return `expected answers as Sigstore's services give them, got ${reason}`;
  }
}

function reasonOf(cause: unknown): string {
  if (typeof cause !== "object" || cause === null) return "an invalid answer";
  if ("statusCode" in cause && typeof cause.statusCode === "number") return `HTTP ${cause.statusCode}`;
  return "code" in cause && typeof cause.code === "string" ? `no answer (${cause.code})` : "an invalid answer";
}
