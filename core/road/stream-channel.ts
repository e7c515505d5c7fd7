import { Buffer } from "node:buffer";
import type { Redaction } from "../action/policy.ts";

/** A part of a channel's text that is replaced; positions count code units from the channel's beginning. */
interface Span {
  readonly from: number;
  readonly to: number;
  readonly replacement: string;
}

/** The place of a piece of an event in its channel. */
export interface ChannelSpan {
  readonly from: number;
  readonly to: number;
}

/**
 * One text of an answer that comes in pieces. What was released is kept for as far as judging what follows needs it;
 * what is held back may go only once a policy has seen it together with the text around it.
 */
export class StreamChannel {
  /** Code units that are held back behind the latest text; Infinity: until the stream ends. */
  readonly #holdback: number;
  /** The text from position `#from` on, which is byte `#fromByte` of its UTF-8. */
  #text = "";
  #from = 0;
  #fromByte = 0;
  #released = 0;
  #cleared = 0;
  #spans: readonly Span[] = [];
  #finished = false;

  constructor(holdback: number) {
    this.#holdback = holdback;
  }

  get head(): number {
    return this.#from + this.#text.length;
  }

  /** The length of the text that policies have cleared. */
  get cleared(): number {
    return this.#cleared;
  }

  /** Code units that could be cleared if policies saw the window now. */
  get ripeUnits(): number {
    return Math.max(0, this.head - (this.#finished ? 0 : this.#holdback) - this.#cleared);
  }

  /** Returns true where enough text can be cleared to be judged: now and then while more comes, the rest once it ended. */
  get isDue(): boolean {
    return this.ripeUnits >= (this.#finished ? 1 : Math.ceil(this.#holdback / 4));
  }

  /** Nothing will be added: none of it has to wait for what follows any more. */
  finish(): void {
    this.#finished = true;
  }

  append(text: string): ChannelSpan {
    if (this.#finished) throw new TypeError("append: expected a text that may grow");
    const from = this.head;
    this.#text += text;
    return { from, to: from + text.length };
  }

  /** The text for policies to judge: the held text, and as much before it as is held back behind it. */
  get window(): string {
    return this.#text;
  }

  /**
   * Takes what policies want replaced, by its bytes in the window, or in the whole text: all that was held long enough
   * may go then, but for a part that is to be replaced and may still grow.
   */
  clear(redactions: readonly Redaction[]): void {
    this.#redact(redactions, 0);
    const ripe = this.#cleared + this.ripeUnits;
    const open = this.#spans.find(({ from, to }) => from < ripe && to > ripe);
    this.#cleared = open === undefined ? ripe : Math.max(this.#cleared, open.from);
  }

  /** The same once the whole text was seen: all of it may go. */
  clearWhole(redactions: readonly Redaction[]): void {
    this.#redact(redactions, this.#fromByte);
    this.#cleared = this.head;
  }

  /** Puts another text in the place of one that is wholly held. */
  replace(text: string): void {
    this.#spans = [{ from: this.#from, to: this.head, replacement: text }];
    this.#cleared = this.head;
  }

  /** The text of a place as it may be seen: a span's replacement stands where the span begins. */
  render({ from, to }: ChannelSpan): string {
    let text = "";
    let at = from;
    for (const span of this.#spans) {
      if (span.to <= at || span.from >= to) continue;
      const begin = Math.max(span.from, this.#released);
      text += this.#slice(at, Math.max(at, begin));
      if (begin >= from) text += span.replacement;
      at = Math.min(span.to, to);
    }
    return text + this.#slice(at, to);
  }

  /** The text of a place as it came. */
  original({ from, to }: ChannelSpan): string {
    return this.#slice(from, to);
  }

  /** Notes that all up to `position` has gone, and forgets what later judgements do not need. */
  release(position: number): void {
    this.#released = position;
    this.#spans = this.#spans.filter(({ to }) => to > position);
    const cut = this.#alignedCut(position - this.#from - Math.min(this.#holdback, position));
    if (cut <= 0) return;
    this.#fromByte += Buffer.byteLength(this.#text.slice(0, cut));
    this.#text = this.#text.slice(cut);
    this.#from += cut;
  }

  /** Never between the halves of a character. */
  #alignedCut(cut: number): number {
    return isLowSurrogate(this.#text.charCodeAt(cut)) ? cut - 1 : cut;
  }

  /** `before`: bytes of the text the offsets count from that are gone from the window. */
  #redact(redactions: readonly Redaction[], before: number): void {
    if (redactions.length === 0) return;
    const bytes = Buffer.from(this.#text);
    const unitAt = (offset: number): number =>
      this.#from + bytes.toString("utf8", 0, Math.max(0, offset - before)).length;
    const asked = redactions.map(({ start, end, replacement }) => ({
      from: unitAt(start),
      to: unitAt(end),
      replacement,
    }));
    this.#spans = join([...this.#spans, ...asked].filter(({ to }) => to > this.#released));
  }

  #slice(from: number, to: number): string {
    return this.#text.slice(from - this.#from, to - this.#from);
  }
}

function join(spans: readonly Span[]): readonly Span[] {
  const joined: Span[] = [];
  for (const next of [...spans].sort((a, b) => a.from - b.from)) {
    const last = joined.at(-1);
    if (last === undefined || next.from >= last.to) joined.push(next);
    else joined[joined.length - 1] = { ...last, to: Math.max(last.to, next.to) };
  }
  return joined;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}
