// What agents and upstreams chose is only ever put in as text, and each character of it shows as itself or as its code.

/** Characters that do not show as themselves: the same as in `core/action/visible-text.ts`. */
const hidden = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|[^\P{Zs} ]|\\(?=u\{)/gu;
/** The same within quotes, where JSON's short escapes stand as well. */
const hiddenInQuotes = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|[^\P{Zs} ]|["\\]/gu;
const shortEscapes = new Map([
  ["\t", "\\t"],
  ["\n", "\\n"],
  ["\r", "\\r"],
  ['"', '\\"'],
  ["\\", "\\\\"],
]);

const escaped = (character) => `\\u{${character.codePointAt(0).toString(16)}}`;

/** Text from anybody: characters that show as nothing, or turn others around, as their code points. */
export function visible(text) {
  return String(text).replace(hidden, escaped);
}

/** The same between quotes, as JSON writes it. */
export function quoted(text) {
  return `"${String(text).replace(hiddenInQuotes, (each) => shortEscapes.get(each) ?? escaped(each))}"`;
}

const latin = /\p{Script=Latin}/u;
const lookAlikes = [
  ["Cyrillic", /\p{Script=Cyrillic}/u],
  ["Greek", /\p{Script=Greek}/u],
];

/** A note on scripts whose letters look alike; empty where none are mixed. */
export function scriptNote(text) {
  const others = lookAlikes.filter(([, letters]) => letters.test(text)).map(([name]) => name);
  return others.length > 0 && latin.test(text) ? `mixes Latin and ${others.join(" and ")} letters` : "";
}

const maxIndent = 32;

/**
 * The lines of a value as indented JSON: every text whole and escaped, members in their order, and a note behind a line
 * whose text mixes scripts. Nothing is cut.
 */
export function* jsonLines(value, depth = 0, label = "", comma = "", note = "") {
  const indent = "  ".repeat(Math.min(depth, maxIndent));
  const isList = Array.isArray(value);
  const inner = entriesOf(value);
  if (inner.length === 0) {
    const own = note || (typeof value === "string" ? noteOn(value) : "");
    yield `${indent}${label}${leaf(value)}${comma}${own}`;
    return;
  }
  yield `${indent}${label}${isList ? "[" : "{"}${note}`;
  for (const [at, [name, each]] of inner.entries()) {
    const begin = isList ? "" : `${quoted(name)}: `;
    yield* jsonLines(each, depth + 1, begin, at === inner.length - 1 ? "" : ",", isList ? "" : noteOn(name));
  }
  yield `${indent}${isList ? "]" : "}"}${comma}`;
}

function entriesOf(value) {
  return typeof value === "object" && value !== null ? Object.entries(value) : [];
}

function leaf(value) {
  if (typeof value === "string") return quoted(value);
  if (Array.isArray(value)) return "[]";
  return typeof value === "object" && value !== null ? "{}" : String(value);
}

function noteOn(text) {
  const note = scriptNote(text);
  return note === "" ? "" : ` // ${note}`;
}

/** A name, with a note where it mixes scripts. */
export function named(text) {
  const note = scriptNote(text);
  return note === "" ? visible(text) : `${visible(text)} [${note}]`;
}

/** The words for what an action does, by the effect of its facts. They name nothing of its arguments. */
const effectWords = new Map([
  ["read", "reads"],
  ["write", "writes"],
  ["delete", "deletes"],
  ["execute", "runs anything"],
  ["network", "uses the network"],
  ["unknown", "cannot be told"],
]);

export const effectOf = (effect) => (effect ? (effectWords.get(effect) ?? visible(effect)) : "–");

const decisionWords = new Map([
  ["allow", "allowed"],
  ["review", "held"],
  ["block", "blocked"],
]);

export const decisionWord = (decision) => decisionWords.get(decision) ?? visible(decision ?? "unknown");

export const count = (value) => Number(value ?? 0).toLocaleString("en");

/** `1 rule`, `2 rules` */
export const counted = (value, noun) => `${count(value)} ${noun}${Number(value) === 1 ? "" : "s"}`;

export const milliseconds = (us) =>
  us === null || us === undefined ? "–" : `${(us / 1_000).toFixed(us < 10_000 ? 2 : 0)} ms`;

/** `14:03:59` */
export const clockTime = (time) => new Date(time).toLocaleTimeString("en", { hourCycle: "h23" });

/** `24 Nov, 14:03:59` */
export function dayTime(time) {
  const date = new Date(time);
  return `${date.toLocaleDateString("en", { day: "numeric", month: "short" })}, ${clockTime(date)}`;
}

/** The time until an instant: `29 min 04 s`, `40 s`, or `no time`. */
export function timeLeft(time, now = Date.now()) {
  const seconds = Math.floor((Date.parse(time) - now) / 1_000);
  if (!(seconds > 0)) return "no time";
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
  const hours = Math.floor(seconds / 3_600);
  return hours < 48 ? `${hours} h ${Math.floor((seconds % 3_600) / 60)} min` : `${Math.floor(hours / 24)} days`;
}

/** The beginning of an id, where a list has no room for it. */
export const shortId = (id) => (id.length > 24 ? `${visible(id.slice(0, 22))}…` : visible(id));

/** A session by its label, or by the beginning of its id. */
export const sessionName = (session, label) => (label ? named(label) : shortId(session));

/** `by default`, or the rules that decided. */
export const rulesText = ({ by_default: byDefault, rules = [] }) =>
  byDefault ? "by default" : rules.map(visible).join(", ");
