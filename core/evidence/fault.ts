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
