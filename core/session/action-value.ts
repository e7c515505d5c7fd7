import type { ActionEffect, ActionFacts } from "../action/action-fact.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import { isJsonObject, type Json } from "../action/json.ts";
import { readAddress } from "../fact/address.ts";
import { findNamedValues, type NamedValue } from "../fact/named-value.ts";

/** Characters of one action's arguments, or of one trusted answer, in which values are looked for. */
const maxSearched = 65_536;
/** Characters of a text that may be one value as a whole. */
const maxWholeValue = 256;

/** A text among the arguments, and the nearest member's name. */
interface ArgumentText {
  readonly name: string;
  readonly text: string;
}

/** The values that an action is for. `isCut`: its arguments are too long to find them all. */
export interface ActionValues {
  readonly values: ReadonlySet<NamedValue>;
  readonly isCut: boolean;
}

/** Members that hold what is said or written, and not for whom or where. */
const prose =
  /^(?:body|text|content|contents|message|description|html|markdown|comment|notes?|summary|subject|title|reason|new_str|old_str|new_text|old_text|patch|diff|file_text)$/i;

/**
 * Finds the hosts, paths and addresses that an action is for: those of its facts, and those that its arguments name. What is
 * only said counts where it is sent out or run: hosts and accounts of a message, everything of a command.
 */
export function findActionValues({ arguments: args, facts, protocol }: ActionEnvelope): ActionValues {
  const values = new Set<NamedValue>();
  if (protocol === "model") return { values, isCut: false };
  let left = maxSearched;
  for (const { name, text } of leafTexts(args)) {
    const searched = text.slice(0, left);
    left -= searched.length;
    addText(values, searched, prose.test(name), facts?.effect ?? "unknown");
    if (left === 0) return { values, isCut: true };
  }
  if (facts !== undefined) addFacts(values, facts);
  return { values, isCut: false };
}

/** Adds what the stated arguments name as their parsers read them: hosts without a scheme, relative paths in their root. */
function addFacts(
  values: Set<NamedValue>,
  { address = [], url = [], path = [], shell, git, hosts, paths }: ActionFacts,
): void {
  for (const { plain, odd } of address) addAddressText(values, plain, odd);
  for (const { host } of url) findNamedValues(`http://${host}`, values);
  for (const { plain } of path) findNamedValues(plain, values);
  if (shell === undefined && git === undefined) return;
  for (const host of hosts) findNamedValues(`http://${host}`, values);
  for (const each of paths) findNamedValues(each, values);
}

function addText(values: Set<NamedValue>, text: string, isProse: boolean, effect: ActionEffect): void {
  const whole = text.trim();
  if (!isProse || effect === "execute" || effect === "unknown") {
    findNamedValues(whole, values);
    if (whole.length <= maxWholeValue) addAddressText(values, whole, false);
  } else if (effect === "network") {
    const said = new Set<NamedValue>();
    findNamedValues(whole, said);
    for (const value of said) if (/^net:|^to:[A-Z\d]+$|^to:0x/.test(value)) values.add(value);
  }
}

/** A word alone may be a handle or a channel without its sign. */
function addAddressText(values: Set<NamedValue>, text: string, odd: boolean): void {
  const { kind, plain } = readAddress(text);
  if (kind !== "other") values.add(`to:${plain.replace(/^(?:\+|00|@)/, "")}`);
  else if (odd) findNamedValues(text, values);
  else if (/^[\w.-]{2,64}$/.test(plain)) values.add(`to:${plain.toLowerCase()}`);
}

/** Adds what a trusted text of any size names; of a long one, what its beginning does. */
export function findTextValues(value: Json, values: Set<NamedValue>): void {
  let left = maxSearched;
  for (const { text } of leafTexts(value)) {
    findNamedValues(text.slice(0, left), values);
    left -= text.length;
    if (left <= 0) return;
  }
}

/** Roles and kinds of items whose texts a model or a tool wrote. */
const foreignRole = /^(?:assistant|tool|model|function)$/;
const foreignType = /tool_result|tool_use|function_call|tool_call|_output$|^reasoning$/;

/** Finds the values that the user and the operator named in a request to a model. */
export function findRequestValues(args: Json, values: Set<NamedValue>): void {
  let left = maxSearched;
  const waiting: Json[] = [args];
  for (let value = waiting.pop(); value !== undefined && left > 0; value = waiting.pop()) {
    if (typeof value === "string") {
      findNamedValues(value.slice(0, left), values);
      left -= value.length;
    } else if (Array.isArray(value)) waiting.push(...(value as readonly Json[]));
    else if (isJsonObject(value) && !isForeign(value)) {
      for (const name of requestMembers) if (value[name] !== undefined) waiting.push(value[name] as Json);
    }
  }
}

const requestMembers = ["messages", "input", "contents", "content", "parts", "text", "system", "instructions"] as const;

function isForeign({ role, type }: { readonly role?: Json; readonly type?: Json }): boolean {
  return (typeof role === "string" && foreignRole.test(role)) || (typeof type === "string" && foreignType.test(type));
}

/** Every text in a value, with the name of the nearest member around it. */
export function* leafTexts(root: Json): Iterable<ArgumentText> {
  const waiting: { readonly name: string; readonly value: Json }[] = [{ name: "", value: root }];
  for (let each = waiting.pop(); each !== undefined; each = waiting.pop()) {
    const { name, value } = each;
    if (typeof value === "string") yield { name, text: value };
    else if (typeof value === "number") yield { name, text: String(value) };
    else if (Array.isArray(value)) {
      for (const item of (value as readonly Json[]).toReversed()) waiting.push({ name, value: item });
    } else if (isJsonObject(value)) {
      for (const [key, member] of Object.entries(value).toReversed()) {
        waiting.push({ name: key, value: member as Json });
        if (key.length > 4) waiting.push({ name: "", value: key });
      }
    }
  }
}
