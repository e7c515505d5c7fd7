import { GatewayError } from "../../action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import { memberPointer } from "../../action/json-pointer.ts";
import type { TokenUsage } from "../../action/model-api.ts";

/** A text in an event. */
interface Piece {
  /** JSON Pointer into the same response without streaming: all pieces of one pointer are one text. */
  readonly pointer: string;
  readonly text: string;
  /** True where no other event adds to it: its pointer is its own. */
  readonly isComplete?: true;
}

/** The content of one event. */
export interface StreamStep {
  /** Texts of the response, in the order in which `rewrite` replaces them; none is empty. */
  readonly pieces: readonly Piece[];
  /**
   * Every other text that reaches the client with the event: names of tools, unknown members and the names in them,
   * comments. Each pointer is one name: the JSON Pointer into the event, escaped.
   */
  readonly unknown: readonly Piece[];
  /** Pointers of texts of the response that are complete after this event. */
  readonly finished: readonly string[];
  /** The token count so far, where the event has one. */
  readonly usage?: TokenUsage;
  /** True if the stream ends with this event, whole or in an error. */
  readonly terminal: boolean;
  /** The provider's error in the middle of its stream. */
  readonly error?: Json;
  /** True if the event may begin a tool call, or hold one. */
  readonly call?: true;
}

interface Lists {
  pieces: Piece[];
  unknown: Piece[];
  finished: string[];
}

/** Names, ids and dates as providers generate them: each is whole in one event. */
const generated = /^[\w.:/@+-]{0,256}$/;
/** Words of the API, which wait for the judgement of the whole answer. */
const apiWord = /^[a-z]{0,32}(?:[._][a-z]{1,32}){0,4}$/;
const maxUnknown = 1_024;

/** Collects the content of a stream's events, one event at a time. */
export class StepDraft {
  readonly #maxText: number;
  readonly #unknownNames = new Set<string>();
  /** Values of the provider that were reported, with their pointers; forgotten where they are too many. */
  readonly #ownValues = new Set<string>();
  #ownCount = 0;
  #text = 0;
  #step: { -readonly [Key in keyof StreamStep]: StreamStep[Key] } & Lists = empty();

  constructor(maxText: number) {
    this.#maxText = maxText;
  }

  /** Returns the finished step and begins the next one. */
  finish(): StreamStep {
    const step = this.#step;
    this.#step = empty();
    return step;
  }

  addPiece(pointer: string, text: string): void {
    this.#countText(text);
    this.#step.pieces.push({ pointer, text });
  }

  /** Adds every text in an unknown value, names of members included. */
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

  /**
   * Adds a value that the provider generates, not the model: as unknown unless each text in it looks generated, else each
   * text as one that is complete. Words of the API are left out, and what was added before.
   */
  addOwn(value: Json | undefined, pointer: string): void {
    if (!isGenerated(value)) this.addUnknown(value, pointer);
    else this.#addComplete(value, pointer);
  }

  #addComplete(value: Json | undefined, pointer: string): void {
    if (typeof value === "string") this.#addOwnText(value, pointer);
    else if (Array.isArray(value)) for (const item of value as readonly Json[]) this.#addComplete(item, pointer);
    else if (isJsonObject(value)) {
      for (const [name, member] of Object.entries(value)) {
        this.#addOwnText(name, pointer);
        this.#addComplete(member, pointer);
      }
    }
  }

  #addOwnText(text: string, pointer: string): void {
    if (apiWord.test(text)) return;
    const key = `${pointer} ${text}`;
    if (this.#ownValues.has(key)) return;
    if (this.#ownValues.size === maxUnknown) this.#ownValues.clear();
    this.#ownValues.add(key);
    this.#countText(text);
    const own = memberPointer("", `${pointer} ${this.#ownCount++}`);
    this.#step.unknown.push({ pointer: own, text, isComplete: true });
  }

  /** Adds all members that are not in `known`. */
  addOthers(object: JsonObject, known: ReadonlySet<string>, pointer: string): void {
    for (const name of Object.keys(object)) {
      if (known.has(name)) continue;
      const value = object[name] as Json;
      if (value !== null) this.#unknown(`${name}\n`, pointer);
      this.addUnknown(value, memberPointer(pointer, name));
    }
  }

  addCall(): void {
    this.#step.call = true;
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
    this.#countText(text);
    this.#unknownNames.add(pointer);
    if (this.#unknownNames.size > maxUnknown) {
      throw new GatewayError(
        "PROVIDER_INVALID",
        `expected at most ${maxUnknown} unknown members in a stream, got more`,
      );
    }
    this.#step.unknown.push({ pointer: memberPointer("", pointer), text });
  }

  #countText(text: string): void {
    this.#text += text.length;
    if (this.#text > this.#maxText) {
      throw new GatewayError("PROVIDER_INVALID", `expected an answer of at most ${this.#maxText} characters, got more`);
    }
  }
}

function empty(): Lists & { terminal: boolean } {
  return { pieces: [], unknown: [], finished: [], terminal: false };
}

function isGenerated(value: Json | undefined): boolean {
  if (typeof value === "string") return generated.test(value);
  if (Array.isArray(value)) return value.every(isGenerated);
  if (!isJsonObject(value)) return true;
  return Object.entries(value).every(([name, member]) => generated.test(name) && isGenerated(member));
}

/** A member of an event that holds text of the response. */
export interface TextSite {
  readonly holder: JsonObject;
  readonly key: string;
}

/** Returns a member that must be an object; null or nothing is an empty one. Throws PROVIDER_INVALID. */
export function objectAt(value: Json | undefined, path: string): JsonObject {
  if (value === undefined || value === null) return {};
  if (!isJsonObject(value)) throw invalid(path, "an object");
  return value;
}

/** Returns a list of objects; null or nothing is an empty one. Throws PROVIDER_INVALID. */
export function objectsAt(value: Json | undefined, path: string): readonly JsonObject[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || !value.every(isJsonObject)) throw invalid(path, "a list of objects");
  return value as readonly JsonObject[];
}

/** Returns a whole number from zero to below a bound. Throws PROVIDER_INVALID. */
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
