import type { Decision } from "./decision.ts";
import type { ActionEnvelope, Protocol } from "./envelope.ts";
import type { RuleExplainer } from "./explanation.ts";

/** `enforce` counts; `shadow` is only recorded. */
export const modes = ["enforce", "shadow"] as const;
export type Mode = (typeof modes)[number];

/** Exactly which policy answered. */
export interface PolicyRef {
  readonly kind: "pack" | "plugin" | "session" | "external";
  readonly name: string;
  readonly version: string;
  /** `sha256:<hex>` over the policy's files. */
  readonly digest: string;
  /** Who signed it; null while it is unsigned. */
  readonly signer: string | null;
}

/** A policy as it stands in force. */
export interface ActivePolicy extends PolicyRef {
  readonly mode: Mode;
}

export const severities = ["info", "low", "medium", "high", "critical"] as const;
export type Severity = (typeof severities)[number];

/** One rule's observation about one action. */
export interface Finding {
  readonly rule: string;
  readonly decision: Decision;
  readonly message: string;
  readonly severity: Severity;
  /** 0 to 100. */
  readonly risk: number;
  readonly mode: Mode;
  /** JSON Pointer into the envelope, where the finding is about one place. */
  readonly pointer?: string;
  /** How many reviewers must approve, 1 to 10; only on a finding that decides `review`. Absent means 1. */
  readonly approvals?: number;
  /** What it adds to the risk of its session, 0 to 100; absent means a tenth of `risk`. */
  readonly session_risk?: number;
  /** What the session is tainted with from here on, whatever the decision and the mode: at most eight words. */
  readonly taints?: readonly string[];
  /** The capability ticket that lifted this rule: dispatching the action spends a use of it. */
  readonly ticket?: string;
}

/** The most words one finding may taint a session with. */
export const maxTaints = 8;

/** The most reviewers one review may ask for. */
export const maxApprovals = 10;

/** One place in the upstream's answer that is not to be seen by anyone: not by the client, not in the evidence. */
export interface Redaction {
  readonly rule: string;
  /** JSON Pointer into the envelope, to a text below `/output`. */
  readonly pointer: string;
  /** Of the text's UTF-8 bytes, the first that goes. On a code point boundary, as is `end`. */
  readonly start: number;
  /** The first byte after it that stays; above `start`. */
  readonly end: number;
  /** What stands there instead: at most 64 printable ASCII characters. */
  readonly replacement: string;
}

/** One policy's answer. `abstain` says: no rule of mine is about this action. */
export interface Verdict {
  readonly decision: Decision | "abstain";
  readonly findings: readonly Finding[];
  /** 0 to 100: the highest risk among the enforced findings. */
  readonly risk: number;
  /** What of the answer is to be replaced, whatever the decision; in phase `output` only. */
  readonly redactions?: readonly Redaction[];
  /** Why the policy could not answer; with it, the decision is `block`. */
  readonly error?: string;
}

/**
 * The one interface that packs, plugins, session drift and external engines implement.
 * A policy that throws, answers late or answers anything but a Verdict has answered `block`.
 */
export interface Policy {
  readonly ref: PolicyRef;
  readonly mode: Mode;
  /** False where what it says of an answer cannot depend on the answer's text; it may where this is not said. */
  readsOutput?(protocol: Protocol): boolean;
  /** What each of its findings taints the session with, beside what the finding says, and what its failure does. */
  readonly taints?: readonly string[];
  /** Whether it may taint the session with what it finds in such an answer, which it does in either mode. */
  taintsOutput?(protocol: Protocol): boolean;
  /** Its rules, where it has such that can be read. */
  readonly explainer?: RuleExplainer;
  evaluate(action: ActionEnvelope): Verdict | Promise<Verdict>;
}
