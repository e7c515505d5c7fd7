import { GatewayError } from "../action/error.ts";
import type { Reason } from "./bundle/reason.ts";

/** What breaks a chain: the reason, from the one closed list, and a sentence about this very place. */
export interface Fault {
  readonly reason: Reason;
  readonly fault: string;
}

export function fault(reason: Reason, text: string): Fault {
  return { reason, fault: text };
}

export function isFault<T extends object>(read: T | Fault): read is Fault {
  return "fault" in read;
}

const closedCodes: ReadonlySet<unknown> = new Set([
  "LEVEL_DATABASE_NOT_OPEN",
  "LEVEL_ITERATOR_NOT_OPEN",
  "LEVEL_SNAPSHOT_NOT_OPEN",
]);

/** The store was closed under a reader, by a stop or a repair: that says nothing about what it holds. */
export function isClosedFault(error: unknown): boolean {
  return closedCodes.has(codeOf(error));
}

/** What a caller is told when a read of the store failed: EVIDENCE_UNAVAILABLE; anything else stays what it is. */
export function readFault(error: unknown): unknown {
  if (!String(codeOf(error)).startsWith("LEVEL_")) return error;
  return new GatewayError("EVIDENCE_UNAVAILABLE", "the store cannot be read; see the log", { cause: error });
}

/** The database wraps what went wrong in an error that says only that it is not open: the message of the innermost one. */
export function rootMessage(error: unknown): string {
  let cause = error;
  while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause;
  return cause instanceof Error ? cause.message : String(cause);
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
