import type { ActionEnvelope } from "../../action/envelope.ts";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import { memberPointer } from "../../action/json-pointer.ts";
import type { Redaction } from "../../action/policy.ts";
import { groupByText } from "../../action/redaction.ts";
import type { OutputPart, OutputScan } from "./output-scan.ts";
import { edgeRanges, PlainText, reach, type SourceRange } from "./plain-text.ts";

const root = "/output";
const usualMember = "as_read";
/** Fewer bytes of a find than this, beside what was found alone, are a neighbouring word and no rest of a secret. */
const minRest = 32;
/** Numbers are shorter, and only they are written with blanks. */
const numberReach = 64;
/** Longer texts are left out of the answer beside its reading: they were judged. */
const maxRepeated = 64;

interface Source {
  /** JSON Pointer into the answer. */
  readonly pointer: string;
  readonly text: string;
}

interface View {
  readonly name: string;
  readonly plain: PlainText;
}

/**
 * An answer as a reader takes it, for a policy that has judged it as it stands: the member `as_read` of the output holds
 * texts with characters as they are read, and the texts of lists joined, once without anything between them and once with
 * blanks. What the policy has redacted already is redacted in it; beside it the answer stands as it was judged, its long texts empty.
 */
export class Reading {
  readonly action: ActionEnvelope;
  readonly #sources: Source[] = [];
  readonly #views: View[] = [];
  readonly #own: ReadonlyMap<string, readonly Redaction[]>;
  readonly #prefix: string;

  /** `own`: merged redactions that fit the action's output. */
  constructor(action: ActionEnvelope, scan: OutputScan, own: readonly Redaction[]) {
    this.#own = groupByText(own);
    const output = withoutLong(action.output as Json) as JsonObject;
    let member = usualMember;
    while (Object.hasOwn(output, member)) member += "_";
    this.#prefix = memberPointer(root, member);
    this.#addTexts(scan);
    for (const parts of scan.lists) this.#addList(parts);
    const names = scan.names.map(({ name }) => ({ [plainName(name)]: "" }));
    const texts = this.#views.map(({ name, plain }) => ({ [name]: plain.text }));
    this.action = Object.freeze({ ...action, output: Object.freeze({ ...output, [member]: [...texts, ...names] }) });
  }

  /** Returns the redactions as those of the answer as it stands. */
  place(redactions: readonly Redaction[]): readonly Redaction[] {
    return redactions.flatMap((redaction) => {
      const view = this.#viewAt(redaction.pointer);
      // The answer itself was judged before.
      if (view === undefined) return [];
      return this.#rest(view.plain.sourcesOf(redaction.start, redaction.end)).map(({ source, from, to }, index) => ({
        rule: redaction.rule,
        pointer: root + this.#sourceOf(source).pointer,
        start: from,
        end: to,
        replacement: index === 0 ? redaction.replacement : "",
      }));
    });
  }

  /** Returns the pointer into the answer as it stands: of a joined text, to its first part. */
  placePointer(pointer: string): string {
    if (pointer !== this.#prefix && !pointer.startsWith(`${this.#prefix}/`)) return pointer;
    const range = this.#viewAt(pointer)?.plain.sourcesOf(0, 1)[0];
    return range === undefined ? root : root + this.#sourceOf(range.source).pointer;
  }

  #addTexts({ texts }: OutputScan): void {
    for (const { pointer, name, text, odd } of texts) {
      const source = this.#add(pointer, text);
      for (const range of odd) {
        const plain = new PlainText();
        plain.add(source, text, range, this.#masks(pointer));
        this.#views.push({ name, plain });
      }
    }
  }

  #addList(parts: readonly OutputPart[]): void {
    const sources = parts.map(({ pointer, text }) => this.#add(pointer, text));
    for (const between of ["", " "]) {
      let plain = new PlainText();
      parts.forEach(({ pointer, text }, index) => {
        const masks = this.#masks(pointer).filter(({ end }) => between !== "" || end < Buffer.byteLength(text));
        if (index > 0) plain.addFixed(between);
        edgeRanges(text, between === "" ? reach : numberReach).forEach((range, place) => {
          if (place > 0) {
            this.#views.push({ name: "text", plain });
            plain = new PlainText();
          }
          plain.add(sources[index] as number, text, range, masks);
        });
      });
      this.#views.push({ name: "text", plain });
    }
  }

  #add(pointer: string, text: string): number {
    return this.#sources.push({ pointer, text }) - 1;
  }

  #masks(pointer: string): readonly Redaction[] {
    return this.#own.get(root + pointer) ?? [];
  }

  #sourceOf(source: number): Source {
    return this.#sources[source] as Source;
  }

  #viewAt(pointer: string): View | undefined {
    if (!pointer.startsWith(`${this.#prefix}/`)) return undefined;
    return this.#views[Number(pointer.slice(this.#prefix.length + 1).split("/", 1)[0])];
  }

  /** The ranges that were not redacted before; none where they are but a word beside one that was. */
  #rest(ranges: readonly SourceRange[]): readonly SourceRange[] {
    const rest = ranges.filter(({ source, from, to }) => {
      const own = this.#masks(this.#sourceOf(source).pointer);
      return !own.some(({ start, end }) => start <= from && end >= to);
    });
    if (rest.length === ranges.length) return rest;
    return rest.reduce((sum, { from, to }) => sum + to - from, 0) < minRest ? [] : rest;
  }
}

function withoutLong(value: Json): Json {
  if (typeof value === "string") return value.length > maxRepeated ? "" : value;
  if (Array.isArray(value)) return value.map(withoutLong);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withoutLong(member)]));
}

function plainName(name: string): string {
  const plain = new PlainText();
  plain.add(0, name, { from: 0, to: name.length, fromByte: 0 }, []);
  return plain.text;
}
