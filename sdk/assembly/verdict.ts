import { Decision, decisionName, Finding, Severity } from "./finding";
import { FindingList } from "./finding-list";
import { RedactionList } from "./redaction";
import { Writer } from "./writer";

const mostFindingBytes: i32 = 130_000;
const mostRedactionBytes: i32 = 130_000;

/**
 * A plugin's verdict: its findings, of which the strictest decides, and its redactions. Each of `allow`, `review` and
 * `block` adds a finding; `at`, `severity`, `risk` and `approvals` describe the last one added. Rules are named without
 * the plugin's name.
 */
export class Verdict {
  private findings: FindingList = new FindingList();
  private redactions: RedactionList = new RedactionList();
  private permits: bool = false;

  /** `silent` is the decision where there is no finding: `allow` or `abstain`. */
  constructor(private silent: Decision) {}

  allow(rule: string, message: string): Verdict {
    this.permits = true;
    return this.add(new Finding(rule, Decision.allow, message));
  }

  /** Adds a finding that permits nothing: unless another policy allows the action, it is not allowed. */
  note(rule: string, message: string): Verdict {
    return this.add(new Finding(rule, Decision.allow, message));
  }

  review(rule: string, message: string): Verdict {
    return this.add(new Finding(rule, Decision.review, message));
  }

  block(rule: string, message: string): Verdict {
    return this.add(new Finding(rule, Decision.block, message));
  }

  /** Adds a finding with a decision chosen by the settings: `allow`, `review` or `block`; another traps. */
  decide(decision: string, rule: string, message: string): Verdict {
    if (decision === "block") return this.block(rule, message);
    if (decision === "review") return this.review(rule, message);
    return decision === "allow" ? this.allow(rule, message) : unreachable();
  }

  /** Sets the place: a JSON Pointer into the action. */
  at(pointer: string): Verdict {
    this.findings.last.pointer = pointer;
    return this;
  }

  /** Sets the severity. Default: high for a block, medium for a review, info for an allow. */
  severity(severity: Severity): Verdict {
    this.findings.last.severity = severity;
    return this;
  }

  /** Sets the risk, 0 to 100. Default: 80 for a block, 40 for a review, 0 for an allow. */
  risk(risk: i32): Verdict {
    this.findings.last.risk = risk;
    return this;
  }

  /** The number of reviewers of a review, 1 to 10. */
  approvals(approvals: i32): Verdict {
    this.findings.last.approvals = approvals;
    return this;
  }

  /**
   * Replaces bytes of the answer, from `start` to before `end`, counted in the decoded UTF-8 of the text at `pointer`.
   * `replacement` is at most 64 printable ASCII characters. In phase `output` only. More than 256 block the answer.
   */
  redact(rule: string, pointer: string, start: i32, end: i32, replacement: string): Verdict {
    this.redactions.add(rule, pointer, start, end, replacement);
    return this;
  }

  /** True where a finding or a redaction was added. */
  get isSilent(): bool {
    return this.findings.decision === Decision.abstain && this.redactions.length === 0;
  }

  /** Writes it as the gateway expects it; `name` is the plugin's. */
  write(writer: Writer, name: string): void {
    const redactions = new Writer();
    if (this.redactions.length > 0) this.redactions.write(redactions.raw(',"redactions":'), name, mostRedactionBytes);
    const fits = !this.redactions.overflow;
    if (!fits) this.block("too-many-redactions", "more has to be redacted than one verdict can hold");
    const found = this.findings.decision;
    const speaks = found > Decision.allow || (found === Decision.allow && this.permits);
    const decision = decisionName(speaks ? found : this.silent);
    writer.raw('{"decision":"').raw(decision).raw('","findings":');
    this.findings.write(writer, name, mostFindingBytes);
    if (fits) writer.bytes(redactions.written);
    writer.raw("}");
  }

  private add(finding: Finding): Verdict {
    this.findings.add(finding);
    return this;
  }
}

/** An empty verdict that abstains until something is added: no rule of this plugin is about the action. */
export function abstain(): Verdict {
  return new Verdict(Decision.abstain);
}

/** A verdict that lets the action pass, as far as this plugin is concerned. */
export function allow(): Verdict {
  return new Verdict(Decision.allow);
}

export function review(rule: string, message: string): Verdict {
  return abstain().review(rule, message);
}

export function block(rule: string, message: string): Verdict {
  return abstain().block(rule, message);
}
