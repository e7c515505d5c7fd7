import { Decision, Finding } from "./finding";
import { Span } from "./span";
import { Writer } from "./writer";

/** The limit of one verdict. */
const most: i32 = 256;

/**
 * The findings of a verdict. Where there are more than the gateway accepts, the strictest are kept and one stands for
 * the others: as strict as they are, with their highest risk and number of reviewers.
 */
export class FindingList {
  private kept: Finding[] = [];
  /** The number of findings kept per decision. */
  private counts: StaticArray<i32> = new StaticArray<i32>(Decision.block + 1);
  private dropped: i32 = 0;
  private strictestDropped: Decision = Decision.abstain;
  private highestDropped: i32 = 0;
  private mostApprovalsDropped: i32 = 1;

  add(finding: Finding): void {
    // The risk of the last finding may still change; it is compared when the next one is added.
    if (this.kept.length > most) this.drop();
    this.kept.push(finding);
    this.counts[finding.decision]++;
  }

  get last(): Finding {
    if (this.kept.length === 0) unreachable();
    return this.kept[this.kept.length - 1];
  }

  /** The decision of the strictest finding; `abstain` without findings. */
  get decision(): Decision {
    for (let decision = Decision.block; decision > Decision.abstain; decision--) {
      if (this.counts[decision] > 0) return decision;
    }
    return Decision.abstain;
  }

  /** Writes them as a list of at most so many bytes. */
  write(writer: Writer, name: string, mostBytes: i32): void {
    if (this.kept.length > most) this.drop();
    const written: Span[] = [];
    // Reserves a place for the finding about the others.
    let left = mostBytes - 512;
    for (let index = 0; index < this.kept.length; index++) {
      written.push(writtenOf(this.kept[index], name));
      left -= written[index].length + 1;
    }
    while (left < 0 || (this.dropped > 0 && written.length === most))
      left += written.splice(this.drop(), 1)[0].length + 1;
    if (this.dropped > 0) written.push(writtenOf(this.remark(), name));
    writer.raw("[");
    for (let index = 0; index < written.length; index++) writer.raw(index > 0 ? "," : "").bytes(written[index]);
    writer.raw("]");
  }

  private remark(): Finding {
    const remark = new Finding("more-findings", this.strictestDropped, `${this.dropped} more findings are left out`);
    remark.risk = this.highestDropped;
    remark.approvals = this.mostApprovalsDropped;
    return remark;
  }

  /** Drops the last of the least strict findings; returns its position. */
  private drop(): i32 {
    let least = Decision.allow;
    while (this.counts[least] === 0) least++;
    let index = this.kept.length - 1;
    while (this.kept[index].decision !== least) index--;
    const finding = this.kept.splice(index, 1)[0];
    this.counts[least]--;
    this.dropped++;
    this.strictestDropped = max(this.strictestDropped, least);
    this.highestDropped = max(this.highestDropped, finding.risk);
    this.mostApprovalsDropped = max(this.mostApprovalsDropped, finding.approvals);
    return index;
  }
}

function writtenOf(finding: Finding, name: string): Span {
  const writer = new Writer();
  finding.write(writer, name);
  return writer.written;
}
