import type { CancelSignal } from "./cancellation.ts";
import type { Decision } from "./decision.ts";
import type { ActionEnvelope, Protocol } from "./envelope.ts";
import type { RuleExplainer } from "./explanation.ts";

/** `enforce` counts; `shadow` is only recorded. */
export const modes = ["enforce", "shadow"] as const;
export type Mode = (typeof modes)[number];

/** Exactly which policy answered. */
export interface PolicyRef {
  readonly kind: "pack" | "plugin" | "engine" | "session" | "external";
  readonly name: string;
  readonly version: string;
  /** `sha256:<hex>` over the policy's files. */
  readonly digest: string;
  /** The signer; null where it is unsigned. */
  readonly signer: string | null;
}

/** A policy in force. */
export interface ActivePolicy extends PolicyRef {
  readonly mode: Mode;
}

export const severities = ["info", "low", "medium", "high", "critical"] as const;
export type Severity = (typeof severities)[number];

/** The severity of a finding that states none, by its decision. */
export const defaultSeverity: Readonly<Record<Decision, Severity>> = { allow: "info", review: "medium", block: "high" };
/** The risk of a finding that states none, by its severity. */
export const defaultRisk: Readonly<Record<Severity, number>> = { info: 0, low: 20, medium: 40, high: 70, critical: 90 };

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
  /** Number of reviewers who must approve, 1 to 10; only on a finding that decides `review`. Absent means 1. */
  readonly approvals?: number;
  /** Points added to the risk of the session, 0 to 100; absent means a tenth of `risk`. */
  readonly session_risk?: number;
  /** Taints added to the session, whatever the decision and the mode: at most eight. */
  readonly taints?: readonly string[];
  /** The capability ticket that lifted this rule: dispatching the action spends a use of it. */
  readonly ticket?: string;
}

/** Taints that one finding may add to a session. */
export const maxTaints = 8;

/** Reviewers that one review may require. */
export const maxApprovals = 10;

/** A part of the upstream's output that is replaced for everyone, in the response and in the evidence. */
export interface Redaction {
  readonly rule: string;
  /** JSON Pointer into the envelope, to a text below `/output`. */
  readonly pointer: string;
  /** The first UTF-8 byte that is replaced. On a code point boundary, as is `end`. */
  readonly start: number;
  /** The first byte after it that is kept; above `start`. */
  readonly end: number;
  /** The replacement: at most 64 printable ASCII characters. */
  readonly replacement: string;
}

/** One rule of a policy, as lists show it. */
export interface PolicyRule extends Pick<Finding, "rule" | "decision" | "severity" | "mode"> {
  readonly title: string;
  /** The items of OWASP, CWE and other lists that it is about. */
  readonly references: readonly string[];
  /** RFC 3339, UTC; without effect from then on. Null where it does not expire. */
  readonly expires: string | null;
}

/** A rule with the name of its policy, in the mode in which it counts. */
export interface ActiveRule extends PolicyRule {
  readonly policy: string;
}

/** One policy's answer. `abstain`: none of its rules matches the action. */
export interface Verdict {
  readonly decision: Decision | "abstain";
  readonly findings: readonly Finding[];
  /** 0 to 100: the highest risk among the enforced findings. */
  readonly risk: number;
  /** Parts of the output to replace, whatever the decision; in phase `output` only. */
  readonly redactions?: readonly Redaction[];
  /** The reason why the policy could not answer; the decision is then `block`. */
  readonly error?: string;
  /** `sha256:<hex>` over the bytes of the answer that another server gave, where the verdict is made of one. */
  readonly answerDigest?: string;
}

/**
 * The one interface that packs, plugins, session drift and external engines implement.
 * A policy that throws, answers late or answers anything but a Verdict has answered `block`.
 */
export interface Policy {
  readonly ref: PolicyRef;
  readonly mode: Mode;
  /** False where the verdict on an output cannot depend on the output's text. Absent means it may. */
  readsOutput?(protocol: Protocol): boolean;
  /** Taints that each of its findings adds to those of the finding itself, and that its failure adds. */
  readonly taints?: readonly string[];
  /** Returns whether findings in such an output may taint the session, which they do in either mode. */
  taintsOutput?(protocol: Protocol): boolean;
  /** Time for which an asynchronous answer may wait for its turn behind others, before its deadline begins; none if absent. */
  readonly maxWaitMs?: number;
  /** Its rules, where it has a list of them. */
  readonly rules?: readonly PolicyRule[];
  /** Its rules, where they can be explained. */
  readonly explainer?: RuleExplainer;
  /** False where another server decides, so that the same action may get another verdict. */
  readonly replayable?: false;
  /** `cancel` aborts when nobody waits for the verdict any more. */
  evaluate(action: ActionEnvelope, cancel?: CancelSignal): Verdict | Promise<Verdict>;
}
