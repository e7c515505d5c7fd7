import { GatewayError } from "../../action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import { memberPointer } from "../../action/json-pointer.ts";
import type { TokenUsage } from "../../action/model-api.ts";

/** A text that an event carries. */
interface Piece {
  /** JSON Pointer into the answer as one that was not streamed: all pieces of one pointer are one text. */
  readonly pointer: string;
  readonly text: string;
}

/** What one event says. */
export interface StreamStep {
  /** Texts of the answer, in the order in which `rewrite` replaces them; none is empty. */
  readonly pieces: readonly Piece[];
  /**
   * Every other text that reaches the client with the event: names of tools, members that are not known here and the
   * names in them, comments. Each pointer is one name: the JSON Pointer into the event, escaped.
   */
  readonly unknown: readonly Piece[];
  /** Pointers of texts of the answer that are whole: nothing is added to them after this event. */
  readonly finished: readonly string[];
  /** The count so far, where the event has one. */
  readonly usage?: TokenUsage;
  /** Whether the stream ends with this event, whole or in an error. */
  readonly terminal: boolean;
  /** What the provider says of an error in the middle of its stream. */
  readonly error?: Json;
}

interface Lists {
  pieces: Piece[];
  unknown: Piece[];
  finished: string[];
}

/** Names, ids and dates as providers make them: nothing a model writes. */
const plain = /^[\w.:/@+-]{0,256}$/;
const maxUnknown = 1_024;

/** Collects what the events of one stream say, one event at a time. */
export class StepDraft {
  readonly #maxText: number;
  readonly #unknownNames = new Set<string>();
  #text = 0;
  #step: { -readonly [Key in keyof StreamStep]: StreamStep[Key] } & Lists = empty();

  constructor(maxText: number) {
    this.#maxText = maxText;
  }

  /** The step as it was drawn up; the next one begins. */
  finish(): StreamStep {
    const step = this.#step;
    this.#step = empty();
    return step;
  }

  addPiece(pointer: string, text: string): void {
    this.#weigh(text);
    this.#step.pieces.push({ pointer, text });
  }

  /** Adds every text in a value that nobody here understands, names of members included. */
  addUnknown(value: Json | undefined, pointer: string): void {
    if (typeof value === "string") this.#unknown(value, pointer);
    else if (Array.isArray(value)) value.forEach((item, index) => void this.addUnknown(item, `${pointer}/${index}`));
    else if (isJsonObject(value)) {
      for (const [name, member] of Object.entries(value)) {
        this.#unknown(`${name}\n`, pointer);
        this.addUnknown(member, memberPointer(pointer, name));
      }
    }
  }

  /** Adds a value that the provider writes, not the model, unless each text in it is what such a value looks like. */
  addOwn(value: Json | undefined, pointer: string): void {
    if (!isPlain(value)) this.addUnknown(value, pointer);
  }

  /** Adds all members that are not among those known. */
  addOthers(object: JsonObject, known: ReadonlySet<string>, pointer: string): void {
    for (const name of Object.keys(object)) {
      if (known.has(name)) continue;
      const value = object[name] as Json;
      if (value !== null) this.#unknown(`${name}\n`, pointer);
      this.addUnknown(value, memberPointer(pointer, name));
    }
  }

  addFinished(pointer: string): void {
    this.#step.finished.push(pointer);
  }

  count(usage: TokenUsage | undefined): void {
    if (usage !== undefined) this.#step.usage = usage;
  }

  end(error?: Json): void {
    this.#step.terminal = true;
    if (error !== undefined) this.#step.error = error;
  }

  #unknown(text: string, pointer: string): void {
    if (text === "") return;
    this.#weigh(text);
    this.#unknownNames.add(pointer);
    if (this.#unknownNames.size > maxUnknown) {
      throw new GatewayError(
        "PROVIDER_INVALID",
        `expected at most ${maxUnknown} unknown members in a stream, got more`,
      );
    }
    this.#step.unknown.push({ pointer: memberPointer("", pointer), text });
  }

  #weigh(text: string): void {
    this.#text += text.length;
    if (this.#text > this.#maxText) {
      throw new GatewayError("PROVIDER_INVALID", `expected an answer of at most ${this.#maxText} characters, got more`);
    }
  }
}

function empty(): Lists & { terminal: boolean } {
  return { pieces: [], unknown: [], finished: [], terminal: false };
}

function isPlain(value: Json | undefined): boolean {
  if (typeof value === "string") return plain.test(value);
  if (Array.isArray(value)) return value.every(isPlain);
  return !isJsonObject(value) || Object.entries(value).every(([name, member]) => plain.test(name) && isPlain(member));
}

/** A place in an event that holds text of the answer. */
export interface TextSite {
  readonly holder: JsonObject;
  readonly key: string;
}

/** An object where there must be one; a null or nothing is an empty one. */
export function objectAt(value: Json | undefined, path: string): JsonObject {
  if (value === undefined || value === null) return {};
  if (!isJsonObject(value)) throw invalid(path, "an object");
  return value;
}

/** A list of objects; a null or nothing is an empty one. */
export function objectsAt(value: Json | undefined, path: string): readonly JsonObject[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || !value.every(isJsonObject)) throw invalid(path, "a list of objects");
  return value as readonly JsonObject[];
}

/** A whole number from zero to below a bound. */
export function indexAt(value: Json | undefined, path: string, bound: number): number {
  if (!Number.isInteger(value) || (value as number) < 0 || (value as number) >= bound) {
    throw invalid(path, `a whole number below ${bound}`);
  }
  return value as number;
}

export function isText(value: Json | undefined): value is string {
  return typeof value === "string" && value !== "";
}

export function invalid(path: string, expected: string): GatewayError {
  return new GatewayError("PROVIDER_INVALID", `expected \`${path}\` to be ${expected}`);
}
