import type { Capability } from "./capability.ts";
import type { Decision } from "./decision.ts";

/** The taint of a session that read what an upstream's tool brought in from outside. */
export const untrustedTaint = "untrusted";

/** Whether a taint may be called so: a word of at most 64 of `a-z`, `0-9` and `-`. */
export function isTaint(name: string): boolean {
  return /^[a-z][a-z0-9-]{0,63}$/.test(name);
}

/** Something a session met that everything it does afterwards may be due to. */
export interface Taint {
  /** `untrusted`, or the word of the rule that found it. */
  readonly name: string;
  /** Where it came from: the upstream and its tool. */
  readonly target: string;
  readonly tool: string;
  /** The action it came with. */
  readonly action: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** What a session is, just before one of its actions is judged. */
export interface SessionState {
  /** Whole points; drained to the action's time. */
  readonly risk: number;
  /** Actions before this one that were let through, and those that are being judged beside it. */
  readonly actions: number;
  /** New reviews it asked for. */
  readonly reviews: number;
  /** Different tools it used, and whether this action's is not among them. */
  readonly tools: number;
  readonly new_tool: boolean;
  /** One of a name; the first that came. */
  readonly taints: readonly Taint[];
}

/** Where an action reaches to, as far as its arguments tell: at most 20 of each, and whether there are more. */
export interface ActionFacts {
  /** Hosts of URLs, with the port where one is written. */
  readonly hosts: readonly string[];
  /** Absolute and home-relative paths, and those that climb. */
  readonly paths: readonly string[];
  readonly more: boolean;
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
