import { GatewayError } from "../../kernel/error.ts";
import { isJsonObject, type Json } from "../../kernel/json.ts";
import type { Answer } from "../../pipeline/answer.ts";
import type { FailedAnswer, WholeAnswer } from "../../provider/answer.ts";
import { retryAfter } from "./error.ts";
import { refuseToolUse } from "./tool-passthrough.ts";

/** What the client gets: all of it, or nothing more, because it was streamed. */
export type ModelReply = WholeReply | { readonly kind: "streamed" };

export interface WholeReply {
  readonly kind: "whole";
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly bytes: Uint8Array;
}

/** A provider's whole answer, byte for byte where policy changes nothing. Its reply throws TOOLS_DISABLED where it must. */
export function wholeReply({ status, body, raw }: WholeAnswer, refusesTools: boolean): Answer<WholeReply> {
  const makeReply = (output: Json): WholeReply => {
    if (refusesTools) refuseToolUse(body);
    return { kind: "whole", status, bytes: output === body && raw !== undefined ? raw : bytesOf(output) };
  };
  return { status: "success", output: body, makeReply };
}

/**
 * A provider's refusal, in its own words where it has some for the client; else the error itself. An approval that was
 * used up for it is told of. Clients find the id of the request in it where their API has a place for it.
 */
export function failedReply(
  { error, status, body }: FailedAnswer,
  approvalId: string | undefined,
  requestId: string,
): Answer<WholeReply> {
  if (body === null || approvalId !== undefined) {
    const output = { code: error.code, message: error.publicMessage };
    const makeReply = (judged: Json): never => {
      throw judged === output ? error : new GatewayError(error.code);
    };
    return { status: "error", output, makeReply };
  }
  const headers = retryAfter(error);
  const makeReply = (judged: Json): WholeReply => {
    return { kind: "whole", status, headers, bytes: bytesOf(withRequestId(judged, requestId)) };
  };
  return { status: "error", output: body, makeReply };
}

function withRequestId(error: Json, requestId: string): Json {
  return isJsonObject(error) && Object.hasOwn(error, "request_id") ? { ...error, request_id: requestId } : error;
}

function bytesOf(value: Json): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}
