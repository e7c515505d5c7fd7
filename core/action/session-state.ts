import type { Capability } from "./capability.ts";
import type { Decision } from "./decision.ts";

/** The taint of a session that read third-party content through an upstream's tool. */
export const untrustedTaint = "untrusted";

/** Returns whether a taint may have this name: 1 to 64 of `a-z`, `0-9` and `-`, a letter first. */
export function isTaint(name: string): boolean {
  return /^[a-z][a-z0-9-]{0,63}$/.test(name);
}

/** A mark of untrusted or sensitive input that may influence all later actions of a session. */
export interface Taint {
  /** `untrusted`, or the word of the rule that found it. */
  readonly name: string;
  /** Its source: the upstream and its tool. */
  readonly target: string;
  readonly tool: string;
  /** The action it came with. */
  readonly action: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** The state of a session just before one of its actions is evaluated. */
export interface SessionState {
  /** Whole points; drained to the action's time. */
  readonly risk: number;
  /** Earlier actions that were allowed, and those that are being evaluated concurrently. */
  readonly actions: number;
  /** New reviews that it caused. */
  readonly reviews: number;
  /** Number of different tools it used, and whether this action's tool is a new one. */
  readonly tools: number;
  readonly new_tool: boolean;
  /** One of a name; the first that came. */
  readonly taints: readonly Taint[];
  /**
   * The hosts, paths and addresses of this action that an untrusted answer named first, in a form in which equal ones are equal
   * texts: at most 20. Absent where there are none.
   */
  readonly untrusted_values?: readonly string[];
  /**
   * The part of a secret, told to the principal's sessions by an answer, that their actions carried away, this one included: in
   * percent, of one of more than 64 characters in percent of 64. Absent where nothing did.
   */
  readonly secret_left?: number;
}

/** An earlier action of the same session. */
export interface PastAction {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** One of the envelope's. */
  readonly protocol: string;
  readonly tool: string;
  readonly target: string;
  readonly capability: Capability;
  readonly decision: Decision;
  readonly dispatched: boolean;
  /** At most four of each, none of more than 256 characters. */
  readonly hosts: readonly string[];
  readonly paths: readonly string[];
}

/** A session's history goes back so many actions. */
export const maxPastActions = 32;
