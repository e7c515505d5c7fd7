import { isJsonObject, type Json, type JsonObject } from "../../kernel/json.ts";

/** What a request tells the mock provider to do. */
export interface MockPlan {
  /** Null: what the user said last. */
  readonly text: string | null;
  readonly calls: readonly { readonly name: string; readonly arguments: JsonObject }[];
  /** Null: it answers. */
  readonly failure: { readonly status: number; readonly retryAfter: string | null } | null;
  /** Before the first byte, and between two pieces of a stream. */
  readonly stallMs: number;
  readonly pauseMs: number;
  /** Null: the stream ends as it should. Else the connection breaks after so many of its events. */
  readonly diesAfter: number | null;
  /** UTF-16 code units of one piece of a stream. */
  readonly pieceLength: number;
}

const usualPlan: MockPlan = {
  text: null,
  calls: [],
  failure: null,
  stallMs: 0,
  pauseMs: 0,
  diesAfter: null,
  pieceLength: 16,
};

const longestWaitMs = 600_000;
const mostDirectives = 1_000;

/** One line of a message, or a model's whole name. `=` stands for a space where a name cannot have one. */
const directive = /^mock:([a-z]+)(?:[ =](.+))?$/gm;

const verbs: Readonly<Record<string, (plan: MockPlan, words: string) => Partial<MockPlan> | undefined>> = {
  say: (plan, words) => ({ text: (plan.text ?? "") + (readText(words) ?? words) }),
  call: ({ calls }, words) => {
    const [, name = "", json = "{}"] = /^(\S+)(?: (.+))?$/.exec(words) ?? [];
    const given = readJson(json);
    return name === "" || !isJsonObject(given) ? undefined : { calls: [...calls, { name, arguments: given }] };
  },
  fail: (_, words) => {
    const [, status, retryAfter = null] = /^([3-5]\d\d)(?:[ ,]([\x21-\x7e]{1,64}))?$/.exec(words) ?? [];
    return status === undefined ? undefined : { failure: { status: Number(status), retryAfter } };
  },
  stall: (_, words) => whole(words, longestWaitMs, (stallMs) => ({ stallMs })),
  pause: (_, words) => whole(words, longestWaitMs, (pauseMs) => ({ pauseMs })),
  die: (_, words) => whole(words, 100_000, (diesAfter) => ({ diesAfter })),
  pieces: (_, words) => whole(words, 100_000, (length) => ({ pieceLength: Math.max(1, length) })),
};

/** Reads the directives in a model's name and in the text of a message. A line that is none says nothing. */
export function readPlan(model: string, text: string): MockPlan {
  let plan = usualPlan;
  let read = 0;
  for (const [, verb = "", words = ""] of `${model}\n${text}`.matchAll(directive)) {
    if (read++ >= mostDirectives) break;
    if (Object.hasOwn(verbs, verb)) plan = { ...plan, ...verbs[verb]?.(plan, words) };
  }
  return plan;
}

/** A JSON string may hold what a line cannot. */
function readText(words: string): string | undefined {
  const value = words.startsWith('"') ? readJson(words) : undefined;
  return typeof value === "string" ? value : undefined;
}

function readJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

function whole(words: string, most: number, make: (value: number) => Partial<MockPlan>): Partial<MockPlan> | undefined {
  return /^\d{1,6}$/.test(words) && Number(words) <= most ? make(Number(words)) : undefined;
}
