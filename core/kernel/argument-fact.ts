import { FactSet, type Facts } from "./fact-set.ts";
import { HostFinder } from "./host-fact.ts";
import { isJsonObject, type Json } from "./json.ts";
import { memberPointer } from "./json-pointer.ts";
import { PathFinder } from "./path-fact.ts";

/** What stands out in an action's arguments, found without understanding any language in them. */
export interface ArgumentFacts {
  /** Hosts of URLs, with the port where one is written; names as DNS knows them (`xn--…`). */
  readonly hosts: Facts<string>;
  /** Absolute and home-relative paths, and those that climb through `..`. */
  readonly paths: Facts<string>;
  /** Lists of texts that look like a program with its arguments. */
  readonly commands: Facts<readonly string[]>;
  /** The longest text: where (RFC 6901) and how long; undefined where there is no text. */
  readonly largestField: { readonly pointer: string; readonly bytes: number } | undefined;
  /** The arguments as JSON without white space. */
  readonly bytes: number;
}

interface Place {
  readonly pointer: string;
  readonly name: string;
  readonly value: Json;
}

const commandNames: ReadonlySet<string> = new Set(["argv", "args", "cmd", "command"]);
const mostWords = 64;
const longestCommand = 1_024;

/**
 * Looks through every text of the arguments, names of members too. At most 20 facts of a kind are told, and
 * whether there are more. Linear, at any depth that `JSON.stringify` can write.
 */
export function findArgumentFacts(args: Json): ArgumentFacts {
  const hosts = new HostFinder();
  const paths = new PathFinder();
  const commands = new FactSet<readonly string[]>();
  let largestField: ArgumentFacts["largestField"];
  for (const place of placesIn(args)) {
    const { value, pointer, name } = place;
    for (const text of typeof value === "string" ? [name, value] : [name]) {
      hosts.look(text);
      paths.look(text);
    }
    if (isCommand(place)) addCommand(value as readonly string[], commands);
    if (typeof value !== "string") continue;
    const bytes = Buffer.byteLength(value);
    if (bytes > (largestField?.bytes ?? -1)) largestField = { pointer, bytes };
  }
  const bytes = Buffer.byteLength(JSON.stringify(args));
  return { hosts: hosts.facts(), paths: paths.facts(), commands: commands.facts(), largestField, bytes };
}

/** Every value in a value, itself first, in order. */
function* placesIn(root: Json): Iterable<Place> {
  const waiting: Place[] = [{ pointer: "", name: "", value: root }];
  for (let place = waiting.pop(); place !== undefined; place = waiting.pop()) {
    yield place;
    for (const each of innerPlaces(place).reverse()) waiting.push(each);
  }
}

function innerPlaces({ pointer, value }: Place): Place[] {
  if (Array.isArray(value)) {
    return value.map((item: Json, index) => ({ pointer: `${pointer}/${index}`, name: "", value: item }));
  }
  if (!isJsonObject(value)) return [];
  return Object.entries(value).map(([name, member]) => ({
    pointer: memberPointer(pointer, name),
    name,
    value: member,
  }));
}

/** Texts alone, the first one word, and either named like a command or with an option behind it. */
function isCommand({ name, value }: Place): boolean {
  if (!Array.isArray(value) || !value.every((item) => typeof item === "string")) return false;
  const [program = "", ...words] = value as readonly string[];
  if (program === "" || /\s/.test(program)) return false;
  return commandNames.has(name.toLowerCase()) || words.some((word) => word.startsWith("-"));
}

function addCommand(words: readonly string[], commands: FactSet<readonly string[]>): void {
  const length = words.length > mostWords ? Number.POSITIVE_INFINITY : words.join(" ").length;
  if (length > longestCommand) commands.leaveOut();
  else commands.add(JSON.stringify(words), words);
}
