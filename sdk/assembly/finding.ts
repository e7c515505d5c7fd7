import { Writer } from "./writer";

/** A decision; a stricter one has a greater number. */
export enum Decision {
  abstain,
  allow,
  review,
  block,
}

/** The severity, independent of the decision. */
export enum Severity {
  info,
  low,
  medium,
  high,
  critical,
}

const decisions: StaticArray<string> = ["abstain", "allow", "review", "block"];
const severities: StaticArray<string> = ["info", "low", "medium", "high", "critical"];
const longestPointer: i32 = 1_024;

export function decisionName(decision: Decision): string {
  return decisions[decision];
}

/** One rule's observation about the action. */
export class Finding {
  severity: Severity;
  /** 0 to 100. */
  risk: i32;
  /** JSON Pointer into the action; empty where the finding is not about one place. */
  pointer: string = "";
  /** The number of reviewers of a review, 1 to 10. */
  approvals: i32 = 1;

  constructor(
    public rule: string,
    public decision: Decision,
    public message: string,
  ) {
    this.severity =
      decision === Decision.block ? Severity.high : decision === Decision.review ? Severity.medium : Severity.info;
    this.risk = decision === Decision.block ? 80 : decision === Decision.review ? 40 : 0;
  }

  /** Writes it as the gateway expects it; `name` is the plugin's. */
  write(writer: Writer, name: string): void {
    writer.raw('{"rule":').text(`${name}.${this.rule}`).raw(',"decision":"').raw(decisionName(this.decision));
    writer.raw('","message":').message(this.message).raw(',"severity":"').raw(severities[this.severity]);
    writer.raw('","risk":').raw(this.risk.toString());
    const pointer = within(this.pointer);
    if (pointer !== "") writer.raw(',"pointer":').text(pointer);
    if (this.decision === Decision.review && this.approvals !== 1) {
      writer.raw(',"approvals":').raw(this.approvals.toString());
    }
    writer.raw("}");
  }
}

/** A pointer that is too long is cut to the enclosing value. */
function within(pointer: string): string {
  let length = pointer.length;
  while (length > longestPointer) length = pointer.lastIndexOf("/", length - 1);
  return pointer.substring(0, length);
}
