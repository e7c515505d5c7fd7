/** The decision about an action; the strictest of all policies' counts. */
export type Decision = "allow" | "review" | "block";
export type Severity = "info" | "low" | "medium" | "high" | "critical";

/** One rule's observation about the action. */
export interface Finding {
  /** Begins with the plugin's name and a dot; at most 128 characters. */
  readonly rule: string;
  readonly decision: Decision;
  /** At most 512 printable characters. */
  readonly message: string;
  readonly severity: Severity;
  /** A whole number from 0 to 100. */
  readonly risk: number;
  /** JSON Pointer into the action, at most 1,024 characters. */
  readonly pointer?: string;
  /** The number of reviewers who must approve, 1 to 10; with the decision `review` only. Default 1. */
  readonly approvals?: number;
}

/** A span of the answer that the caller must not read; in phase `output` only. */
export interface Redaction {
  readonly rule: string;
  /** JSON Pointer into the action, to a text below `/output`. */
  readonly pointer: string;
  /** The first removed byte of the text's UTF-8. On a code point boundary, as is `end`. */
  readonly start: number;
  /** The first byte after the span; above `start`. */
  readonly end: number;
  /** The replacement: at most 64 printable ASCII characters. */
  readonly replacement: string;
}

/** The output of `evaluate`. Anything else blocks the action. */
export interface Verdict {
  /**
   * The decision of the strictest finding. Without a finding that reviews or blocks: `allow`, or `abstain`, which
   * permits nothing.
   */
  readonly decision: Decision | "abstain";
  /** At most 256. */
  readonly findings: readonly Finding[];
  /** At most 256. */
  readonly redactions?: readonly Redaction[];
}
