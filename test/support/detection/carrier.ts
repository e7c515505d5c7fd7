import type { JsonObject } from "../../../core/action/json.ts";

/** How a text stands in the answer of a tool. */
export interface Carrier {
  readonly name: string;
  readonly wrap: (text: string) => JsonObject;
  /** The text as an agent would come to read it, out of the answer. */
  readonly read: (output: JsonObject) => string;
}

const content = (text: string): JsonObject => ({ content: [{ type: "text", text }] });
const all = (output: JsonObject): string => leaves(output).join("\n");
const encode = (text: string): string => Buffer.from(text).toString("base64");
const decoded = (output: JsonObject): string =>
  all(output).replace(/[A-Za-z0-9+/]{16,}={0,2}/g, (run) => Buffer.from(run, "base64").toString());
const unescaped = (output: JsonObject): string =>
  all(output).replace(/\\u([0-9a-f]{4})/g, (_, code) => String.fromCharCode(Number.parseInt(code, 16)));
const escapeAll = (text: string): string =>
  Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, "0")}`).join("");

export const sentenceCarrier: Carrier = {
  name: "a sentence",
  wrap: (text) => content(`It says ${text} there, as of today.`),
  read: all,
};

/** Where secrets, personal data and instructions turn up in answers. */
export const carriers: readonly Carrier[] = [
  sentenceCarrier,
  { name: "a line of its own", wrap: (text) => content(`first line — ключ 🔑\n${text}\nlast line`), read: all },
  { name: "a table", wrap: (text) => content(`| id | value |\n|---|---|\n| 7 | ${text} |\n`), read: all },
  {
    name: "structuredContent",
    wrap: (text) => ({ content: [], structuredContent: { rows: [{ v: text }] } }),
    read: all,
  },
  { name: "error text", wrap: (text) => ({ isError: true, ...content(`Error: cannot parse "${text}"`) }), read: all },
  {
    name: "resource text",
    wrap: (text) => ({ content: [{ type: "resource", resource: { uri: "file:///a", text: `v=${text};` } }] }),
    read: all,
  },
  {
    name: "JSON in a text",
    wrap: (text) => content(JSON.stringify({ note: `a\n${text}\n`, path: "C:\\dir" }, null, 2)),
    read: (output) => all(output).replaceAll("\\n", "\n"),
  },
  { name: "escapes in a text", wrap: (text) => content(`{"v":"${escapeAll(text)}"}`), read: unescaped },
  { name: "base64 in a text", wrap: (text) => content(`data: ${encode(`so it is ${text}, yes`)} end`), read: decoded },
  {
    name: "base64 of a resource",
    wrap: (text) => ({ content: [{ type: "resource", resource: { uri: "a:b", blob: encode(`v: ${text}\n`) } }] }),
    read: decoded,
  },
];

function leaves(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(leaves) : [];
}
