import { Writer } from "./writer";

/** The limit of one verdict. */
const most: i32 = 256;
const longestPointer: i32 = 1_024;

/** A span of the answer that the caller must not read. */
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

/** The redactions of a verdict. None is dropped silently: more than the gateway accepts block the answer. */
export class RedactionList {
  private kept: Redaction[] = [];
  /** True where there were more than fit. */
  overflow: bool = false;

  get length(): i32 {
    return this.kept.length;
  }

  add(rule: string, pointer: string, start: i32, end: i32, replacement: string): void {
    if (this.kept.length === most || pointer.length > longestPointer) this.overflow = true;
    else this.kept.push(new Redaction(rule, pointer, start, end, replacement));
  }

  /** Writes them as a list of at most so many bytes; overflows and writes nothing where they need more. */
  write(writer: Writer, name: string, mostBytes: i32): void {
    const list = new Writer();
    for (let index = 0; index < this.kept.length; index++) {
      this.kept[index].write(list.raw(index === 0 ? "[" : ","), name);
    }
    if (list.written.length > mostBytes) this.overflow = true;
    else writer.bytes(list.written).raw("]");
  }
}
