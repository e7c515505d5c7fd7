import { GatewayError } from "../kernel/error.ts";
import { type JsonRpcMessage, readJsonRpc } from "../kernel/json-rpc.ts";
import { type JsonBounds, parseStrictJson, parseStrictText } from "../kernel/strict-json.ts";

/** How much of an upstream's answer is believed: `bytes` of one message, and the shape of its JSON. */
export interface ReplyBounds {
  readonly bytes: number;
  readonly json: JsonBounds;
}

/** Reads one message of an upstream. Throws UPSTREAM_INVALID and says what was wrong with it. */
export function readReply(data: Uint8Array | string, bounds: ReplyBounds): JsonRpcMessage {
  if (data.length > bounds.bytes) throw oversized(bounds);
  try {
    return readJsonRpc(
      typeof data === "string" ? parseStrictText(data, bounds.json) : parseStrictJson(data, bounds.json),
    );
  } catch (cause) {
    throw new GatewayError("UPSTREAM_INVALID", GatewayError.from(cause).publicMessage, { cause });
  }
}

export function oversized(bounds: ReplyBounds): GatewayError {
  return new GatewayError("UPSTREAM_INVALID", `expected a message of at most ${bounds.bytes} bytes, got more`);
}

const idPattern = /"id"\s*:\s*(\d{1,15})\s*[,}]/;

/**
 * The id in a message that cannot be read, from its first or last bytes; undefined where there is none to be seen.
 * Good for one thing only: failing that request instead of all of them.
 */
export function guessId(head: Uint8Array, tail: Uint8Array): number | undefined {
  const seen =
    idPattern.exec(Buffer.from(tail).toString("latin1")) ?? idPattern.exec(Buffer.from(head).toString("latin1"));
  return seen === null ? undefined : Number(seen[1]);
}
