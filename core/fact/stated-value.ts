import type { FactStatement, StatedDialect } from "../action/action-fact.ts";
import type { Json } from "../action/json.ts";
import { namesOfPointer } from "../action/json-pointer.ts";

/** The values at the places of one kind. */
export interface StatedValues<Value> {
  readonly values: readonly Value[];
  /** False where there is none, more than are read, or one of another type or too long. */
  readonly isWhole: boolean;
}

/** A command line, or a program with its arguments. */
export type CommandText = string | readonly string[];

/** The stated arguments of one action: all that the parsers are given. A kind that is not stated is absent. */
export interface StatedArguments {
  readonly shell?: StatedValues<CommandText>;
  readonly git?: StatedValues<CommandText>;
  readonly sql?: StatedValues<string>;
  readonly url?: StatedValues<string>;
  readonly path?: StatedValues<string>;
  readonly address?: StatedValues<string>;
  readonly dialect: StatedDialect | null;
  readonly root: string | null;
}

/** Characters of one text that a parser is given. */
const maxStatedText = 16_384;
const maxValues = 20;
/** Values that are looked at where a place names every item of a list. */
const maxVisited = 10_000;

/** Picks what an operator stated out of the arguments of an action. */
export function pickStated(args: Json, statement: FactStatement): StatedArguments {
  const { shell, git, sql, url, path, address, dialect = null, root = null } = statement;
  return {
    ...(shell === undefined ? {} : { shell: pickCommands(args, shell) }),
    ...(git === undefined ? {} : { git: pickCommands(args, git) }),
    ...(sql === undefined ? {} : { sql: pickTexts(args, [sql]) }),
    ...(url === undefined ? {} : { url: pickTexts(args, url) }),
    ...(path === undefined ? {} : { path: pickTexts(args, path) }),
    ...(address === undefined ? {} : { address: pickTexts(args, address) }),
    dialect,
    root,
  };
}

function lengthOf(value: CommandText): number {
  return typeof value === "string" ? value.length : value.reduce((sum, word) => sum + word.length + 1, 0);
}

function pickCommands(args: Json, place: string): StatedValues<CommandText> {
  return wholeOf(valuesAt(args, place), isCommandText);
}

/** A list of texts at a place stands for its items. */
function pickTexts(args: Json, places: readonly string[]): StatedValues<string> {
  const found = places.map((place) => valuesAt(args, place));
  const values = found.flatMap((each) => each.values.flatMap((value): readonly Json[] => itemsOf(value)));
  return wholeOf({ values, isCut: found.some(({ isCut }) => isCut) }, (value) => typeof value === "string");
}

function itemsOf(value: Json): readonly Json[] {
  return Array.isArray(value) ? value : [value];
}

function wholeOf<Value extends CommandText>(
  { values, isCut }: FoundValues,
  isRead: (value: Json) => boolean,
): StatedValues<Value> {
  const read = values.filter((value) => isRead(value) && lengthOf(value as Value) <= maxStatedText);
  const isWhole = !isCut && values.length > 0 && values.length <= maxValues && read.length === values.length;
  return { values: read.slice(0, maxValues) as readonly unknown[] as readonly Value[], isWhole };
}

function isCommandText(value: Json): boolean {
  if (typeof value === "string") return true;
  return Array.isArray(value) && value.length > 0 && value.every((word) => typeof word === "string");
}

interface FoundValues {
  readonly values: readonly Json[];
  /** True where values are left out. */
  readonly isCut: boolean;
}

/** Finds the values at a place (an argument or a JSON Pointer with `*`), without those that are null or an empty list: an argument that was left out. */
export function valuesAt(args: Json, place: string): FoundValues {
  const names = place.startsWith("/") ? namesOfPointer(place) : [place];
  let values: readonly Json[] = [args];
  for (const name of names) {
    values = values.flatMap((value) => membersAt(value, name));
    if (values.length > maxVisited) return { values: [], isCut: true };
  }
  return {
    values: values.filter((value) => value !== null && !(Array.isArray(value) && value.length === 0)),
    isCut: false,
  };
}

function membersAt(value: Json, name: string): readonly Json[] {
  if (name === "*" && Array.isArray(value)) return value;
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return [];
  return [(value as Readonly<Record<string, Json>>)[name] as Json];
}
