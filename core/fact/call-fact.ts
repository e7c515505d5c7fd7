import {
  type ActionEffect,
  type ActionFacts,
  type CallFact,
  capabilityEffect,
  type FactStatement,
  strictestEffect,
} from "../action/action-fact.ts";
import type { Capability } from "../action/capability.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import { findPlaces } from "../action/fact.ts";
import type { GlobTable } from "../action/glob.ts";
import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import { parseStrictJson } from "../action/strict-json.ts";
import type { FactParsers } from "./parser.ts";
import { joinPlaces, joinShells, joinSql, readStated, type StatedFacts } from "./stated-fact.ts";
import { pickStated, type StatedArguments } from "./stated-value.ts";

/** A tool call that a model asks its client for. */
export interface AskedCall {
  /** Null where it cannot be read. */
  readonly tool: string | null;
  /** A text is JSON as the model wrote it. */
  readonly arguments: Json;
}

/** The statements of the operator about the tools that models ask for. */
export interface CallStatements {
  readonly facts: GlobTable<FactStatement>;
  readonly capabilities: GlobTable<Capability>;
  /** Returns the calls that the output of a model action asks for, in their order. Never throws. */
  readonly read: (action: ActionEnvelope) => readonly AskedCall[];
}

/** A call of a stated tool, with what was picked of its arguments. */
export interface StatedCall {
  readonly tool: string;
  /** Null where the arguments cannot be read. */
  readonly arguments: JsonObject | null;
  readonly capability: Capability;
  /** Undefined where nothing but the capability is stated, or nothing can be picked. */
  readonly stated: StatedArguments | undefined;
}

/** The calls of one answer whose arguments are read, and the characters of their arguments in all. */
const maxCalls = 20;
const maxArguments = 1_048_576;
const maxToolName = 128;
const argumentBounds = { depth: 64, nodes: 10_000, stringLength: maxArguments, reader: "tolerant" } as const;

/**
 * Returns the calls of stated tools that an answer asks for, the first ones whole, each of the others as one that cannot be
 * read. INVARIANT: a call without a readable name is one of them: it may be of a stated tool.
 */
export function statedCalls(
  action: ActionEnvelope,
  { facts, capabilities, read }: CallStatements,
): readonly StatedCall[] {
  let left = maxArguments;
  const calls: StatedCall[] = [];
  for (const asked of read(action)) {
    const name = asked.tool ?? "";
    const statement = facts.get(name);
    const capability = capabilities.get(name);
    if (statement === undefined && capability === undefined && name !== "") continue;
    const size = typeof asked.arguments === "string" ? asked.arguments.length : 0;
    const isRead = calls.length < maxCalls && size <= left && name !== "" && name.length <= maxToolName;
    left -= isRead ? size : 0;
    const args = isRead ? readArguments(asked.arguments) : null;
    calls.push({
      tool: name.slice(0, maxToolName),
      arguments: args,
      capability: capability ?? "execute",
      stated: args === null || statement === undefined ? undefined : pickStated(args, statement),
    });
    if (calls.length > maxCalls) break;
  }
  return calls;
}

/** An empty text stands for no arguments, as clients take it. */
function readArguments(value: Json): JsonObject | null {
  if (value === "") return {};
  try {
    const read = typeof value === "string" ? parseStrictJson(value, argumentBounds) : value;
    return isJsonObject(read) ? read : null;
  } catch {
    return null;
  }
}

/** The facts of all calls together: the strictest effect counts, and `calls` has that of each. */
export function factsOfCalls(calls: readonly StatedCall[], parsers: Partial<FactParsers>): ActionFacts {
  const read = calls.map(({ stated }) => (stated === undefined ? undefined : readStated(stated, parsers)));
  const effects = calls.map((call, index) => effectOf(call, read[index]));
  const facts = read.filter((each) => each !== undefined);
  const { kinds, isWhole } = joinKinds(facts);
  return {
    ...joinPlaces([
      ...calls.map((call) => (call.arguments === null ? unreadPlaces : findPlaces(call.arguments))),
      ...facts.flatMap(({ places }) => places),
    ]),
    // Joined, they may be more than are listed.
    effect: strictestEffect([
      ...(isWhole && calls.length <= maxCalls ? effects : (["unknown"] as const)),
      ...[kinds.shell, kinds.sql].flatMap((kind) => kind?.effect ?? []),
    ]),
    ...kinds,
    calls: calls.slice(0, maxCalls).map(({ tool }, index): CallFact => ({ tool, effect: effects[index] ?? "unknown" })),
  };
}

const unreadPlaces = { hosts: [], paths: [], more: true };

function effectOf({ arguments: args, capability }: StatedCall, read: StatedFacts | undefined): ActionEffect {
  return args === null ? "unknown" : (read?.effect ?? capabilityEffect[capability]);
}

/** Facts of one kind in all calls together. */
const maxFacts = 20;

interface JoinedKinds {
  readonly kinds: StatedFacts["kinds"];
  /** False where facts are left out. */
  readonly isWhole: boolean;
}

/** The kinds of all calls together: a kind that one of them has is there. */
function joinKinds(read: readonly StatedFacts[]): JoinedKinds {
  const shells = read.flatMap(({ kinds }) => kinds.shell ?? []);
  const sqls = read.flatMap(({ kinds }) => kinds.sql ?? []);
  const dialects = new Set(sqls.map(({ dialect }) => dialect));
  const [dialect = null] = dialects;
  const lists = {
    git: joinLists(read.map(({ kinds }) => kinds.git)),
    url: joinLists(read.map(({ kinds }) => kinds.url)),
    path: joinLists(read.map(({ kinds }) => kinds.path)),
    address: joinLists(read.map(({ kinds }) => kinds.address)),
  };
  const given = Object.entries(lists).filter(([, list]) => list !== undefined);
  return {
    kinds: {
      ...(shells.length === 0 ? {} : { shell: joinShells(shells) }),
      ...(sqls.length === 0 ? {} : { sql: joinSql(sqls, dialects.size > 1 ? null : dialect) }),
      ...(Object.fromEntries(given.map(([kind, list]) => [kind, list?.slice(0, maxFacts)])) as StatedFacts["kinds"]),
    },
    isWhole: given.every(([, list]) => (list?.length ?? 0) <= maxFacts),
  };
}

/** Undefined where none of the calls has this kind. */
function joinLists<Fact>(lists: readonly (readonly Fact[] | undefined)[]): readonly Fact[] | undefined {
  const given = lists.filter((list) => list !== undefined);
  return given.length === 0 ? undefined : given.flat();
}
