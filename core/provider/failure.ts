import { type ErrorCode, GatewayError } from "../kernel/error.ts";
import type { JsonObject } from "../kernel/json.ts";
import type { FailedAnswer } from "./answer.ts";

/** An attempt that came to nothing. */
export interface Failure {
  readonly answer: FailedAnswer;
  /**
   * Whether the same request may be sent again: `always` where the provider certainly saw nothing of it, `unapproved`
   * where it says that it did not serve it; that is not enough where an approval was used up.
   */
  readonly again: "always" | "unapproved" | "never";
  /** How long the provider wants to be left alone; 0 where it says nothing. */
  readonly askedMs: number;
  /** Null where it says nothing about the provider's health. */
  readonly healthy: boolean | null;
}

/** Not served, as the provider says itself, and perhaps at the next attempt. */
const repeatable: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 529]);
const busy: ReadonlySet<number> = new Set([429, 529]);
/** About the gateway's own account. What they say is none of the client's business. */
const refusesGateway: ReadonlySet<number> = new Set([401, 402, 403]);

/** Clients are told to wait a day at most, whatever the provider asks for. */
const longestRestS = 86_400;

/** What a status other than 2xx stands for. `body` is what the provider says, in the client's API. */
export function failureOf(status: number, body: JsonObject, askedMs: number, repeats: boolean): Failure {
  const [code, detail] = meaningOf(status);
  const retryAfterS = Math.min(Math.ceil(askedMs / 1000), longestRestS);
  const data = { http_status: status, ...(retryAfterS > 0 ? { retry_after_s: retryAfterS } : {}) };
  const error = new GatewayError(code, detail, { data });
  const own = code === "PROVIDER_REFUSED" || code === "PROVIDER_BUSY";
  return {
    answer: {
      kind: "failed",
      error,
      status: own ? status : error.row.status,
      body: own ? body : null,
      outcome: "error",
      elsewhere: code !== "PROVIDER_REFUSED",
    },
    again: repeats && repeatable.has(status) ? "unapproved" : "never",
    askedMs,
    healthy: healthOf(status),
  };
}

/** An attempt that ended in an error of ours; `reached` as the exchange says. */
export function brokenOff(error: GatewayError, reached: boolean): Failure {
  const cancelled = error.code === "CANCELLED";
  // It was answered, and well: only this client's API has no words for it.
  const inexpressible = error.code === "MODEL_UNTRANSLATABLE";
  return {
    answer: {
      kind: "failed",
      error,
      status: error.row.status,
      body: null,
      outcome: reached && !inexpressible ? "unknown" : "error",
      elsewhere: !cancelled && !inexpressible,
    },
    again: reached || cancelled ? "never" : "always",
    askedMs: 0,
    healthy: cancelled || inexpressible ? null : false,
  };
}

/** Nothing was sent at all. */
export function notSent(error: GatewayError): Failure {
  return { ...brokenOff(error, false), again: "never", healthy: null };
}

function meaningOf(status: number): readonly [ErrorCode, string] {
  const answered = `it answered HTTP ${status}`;
  if (busy.has(status)) return ["PROVIDER_BUSY", answered];
  if (status < 400) return ["PROVIDER_INVALID", `expected no redirect, got HTTP ${status}`];
  if (refusesGateway.has(status)) return ["PROVIDER_UNAVAILABLE", `it refused the gateway (HTTP ${status})`];
  if (status >= 500 || status === 408) return ["PROVIDER_UNAVAILABLE", answered];
  return ["PROVIDER_REFUSED", answered];
}

/** A provider that refuses a request is well; one that is asked too much may be. */
function healthOf(status: number): boolean | null {
  if (status === 403 || status === 408 || status === 429) return null;
  return status >= 400 && status < 500 && !refusesGateway.has(status);
}
