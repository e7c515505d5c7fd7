/** What an action gets; the strictest of all policies' counts. */
export type Decision = "allow" | "review" | "block";
export type Severity = "info" | "low" | "medium" | "high" | "critical";

/** One rule's observation about the action. */
export interface Finding {
  /** Begins with the plugin's name and a dot; at most 128 characters. */
  readonly rule: string;
  readonly decision: Decision;
  /** At most 512 characters, each of which shows as itself. */
  readonly message: string;
  readonly severity: Severity;
  /** A whole number from 0 to 100. */
  readonly risk: number;
  /** JSON Pointer into the action, at most 1,024 characters. */
  readonly pointer?: string;
  /** How many reviewers must approve, 1 to 10; with the decision `review` only. Absent means 1. */
  readonly approvals?: number;
}

/** A place in the answer that whoever asked shall not read; in phase `output` only. */
export interface Redaction {
  readonly rule: string;
  /** JSON Pointer into the action, to a text below `/output`. */
  readonly pointer: string;
  /** Of the text's UTF-8 bytes, the first that goes. On a code point boundary, as is `end`. */
  readonly start: number;
  /** The first byte after it that stays; above `start`. */
  readonly end: number;
  /** What stands there instead: at most 64 printable ASCII characters. */
  readonly replacement: string;
}

/** What `evaluate` answers. Anything else blocks the action. */
export interface Verdict {
  /**
   * That of the strictest finding. Where no finding reviews or blocks: `allow`, or `abstain`, which permits nothing.
   */
  readonly decision: Decision | "abstain";
  /** At most 256. */
  readonly findings: readonly Finding[];
  /** At most 256. */
  readonly redactions?: readonly Redaction[];
}
