import { Writer } from "./writer";

/** What the gateway takes in one verdict. */
const most: i32 = 256;
const longestPointer: i32 = 1_024;

/** A place in the answer that shall not be read by whoever asked. */
class Redaction {
  constructor(
    public rule: string,
    public pointer: string,
    public start: i32,
    public end: i32,
    public replacement: string,
  ) {}

  write(writer: Writer, name: string): void {
    writer.raw('{"rule":').text(`${name}.${this.rule}`).raw(',"pointer":').text(this.pointer);
    writer.raw(`,"start":${this.start},"end":${this.end},"replacement":`).text(this.replacement).raw("}");
  }
}

/** The redactions of a verdict. None is left out in silence: what is more than the gateway takes has to block. */
export class RedactionList {
  private kept: Redaction[] = [];
  /** Whether there were more than fit. */
  overflow: bool = false;

  get length(): i32 {
    return this.kept.length;
  }

  add(rule: string, pointer: string, start: i32, end: i32, replacement: string): void {
    if (this.kept.length === most || pointer.length > longestPointer) this.overflow = true;
    else this.kept.push(new Redaction(rule, pointer, start, end, replacement));
  }

  /** Writes them as a list of at most so many bytes; where they are more, writes nothing and overflows. */
  write(writer: Writer, name: string, mostBytes: i32): void {
    const list = new Writer();
    for (let index = 0; index < this.kept.length; index++) {
      this.kept[index].write(list.raw(index === 0 ? "[" : ","), name);
    }
    if (list.written.length > mostBytes) this.overflow = true;
    else writer.bytes(list.written).raw("]");
  }
}
