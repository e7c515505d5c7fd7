import type { Json } from "../../../core/action/json.ts";
import { SeededRandom } from "./random.ts";

const perKind = 40;
const word = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

export interface Credential {
  readonly kind: string;
  readonly text: string;
}

/** Something in which a credential may be found, in the arguments of a call or in the body of a model request. */
export interface Holder {
  readonly name: string;
  readonly hold: (text: string) => Json;
}

/** Credentials of nothing, by the rule that is to find each; put together so that no scanner takes this file for one. */
const makers: Readonly<Record<string, (random: SeededRandom) => string>> = {
  "aws-access-key": (random) => `${random.pick(["AKIA", "ASIA"])}${random.letters(16, upper)}`,
  "github-token": (random) => `${random.pick(["ghp", "gho", "ghs"])}_${random.letters(36, word)}`,
  "slack-token": (random) => `${random.pick(["xoxb", "xoxp"])}-${random.digits(12)}-${random.letters(24, word)}`,
  "private-key": (random) =>
    `-----BEGIN ${random.pick(["RSA ", "OPENSSH ", "EC ", ""])}PRIVATE KEY-----\n${random.letters(60, word)}`,
  "json-web-token": (random) => `${token(random, 24)}.${token(random, 40)}.${random.letters(43, word)}`,
  "keyword-value": (random) =>
    `${random.pick(["DB_PASSWORD=", "api_key: ", '"client_secret": "', "access_key="])}${random.letters(random.pick([20, 24, 32, 40]), word)}`,
};

export const credentialKinds: readonly string[] = Object.keys(makers);

/** The same in every run. */
export function credentials(): readonly Credential[] {
  const random = new SeededRandom(11);
  return Object.entries(makers).flatMap(([kind, make]) =>
    Array.from({ length: perKind }, () => ({ kind, text: make(random) })),
  );
}

const encode = (text: string, as: BufferEncoding): string => Buffer.from(text).toString(as);
const call = (args: Json): Json => ({ id: "call_1", type: "function", function: { arguments: JSON.stringify(args) } });
const chat = (message: Json): Json => ({ model: "m", messages: [message] });

/** The first is a sentence. */
export const places: readonly Holder[] = [
  { name: "a sentence", hold: (text) => ({ body: `use ${text} for it` }) },
  { name: "a line of a file", hold: (text) => ({ content: `first\n${text}\nlast` }) },
  { name: "deep in an object", hold: (text) => ({ a: { "b/c": { d: { e: text } } } }) },
  { name: "a value in a list", hold: (text) => ({ rows: [["a", text]] }) },
  { name: "the name of a member", hold: (text) => ({ [text]: true }) },
  { name: "JSON in a text", hold: (text) => ({ body: JSON.stringify({ note: `see\n${text}` }) }) },
  { name: "chat: content", hold: (text) => chat({ role: "user", content: `use ${text}` }) },
  { name: "chat: a part of content", hold: (text) => chat({ role: "user", content: [{ type: "text", text }] }) },
  { name: "chat: arguments of a call", hold: (text) => chat({ role: "assistant", tool_calls: [call({ a: text })] }) },
  { name: "messages: system", hold: (text) => ({ model: "m", system: [{ type: "text", text }], messages: [] }) },
  {
    name: "messages: the input of a tool",
    hold: (text) => chat({ role: "assistant", content: [{ type: "tool_use", name: "t", input: { a: text } }] }),
  },
  {
    name: "messages: a tool result",
    hold: (text) => chat({ role: "user", content: [{ type: "tool_result", content: [{ type: "text", text }] }] }),
  },
];

/** As some write it who want it through, or do not know better. */
export const forms: readonly Holder[] = [
  { name: "base64", hold: (text) => ({ body: encode(`it is ${text} `, "base64") }) },
  {
    name: "base64 in lines",
    hold: (text) => ({ body: encode(`${padding}\n${text}`, "base64").replace(/.{76}/g, "$&\n") }),
  },
  {
    name: "base64url behind a name",
    hold: (text) => ({ url: `https://host.example/?d=${encode(text, "base64url")}` }),
  },
  {
    name: "base64 in the path of a URL",
    hold: (text) => ({ url: `https://host.example/c/${encode(text, "base64url")}` }),
  },
  { name: "base64 of JSON", hold: (text) => ({ body: encode(JSON.stringify({ a: `\n${text}` }), "base64") }) },
  { name: "base64 twice", hold: (text) => ({ body: encode(encode(text, "base64"), "base64") }) },
  { name: "as a part of a URL", hold: (text) => ({ url: `https://host.example/?q=${encodeURIComponent(text)}` }) },
  { name: "as a form", hold: (text) => ({ body: new URLSearchParams({ q: text }).toString() }) },
  {
    name: "JSON in JSON in a text",
    hold: (text) => ({ body: JSON.stringify({ a: JSON.stringify({ b: `\n${text}` }) }) }),
  },
  { name: "hexadecimal", hold: (text) => ({ body: encode(text, "hex") }) },
  {
    name: "two texts, half in each",
    hold: (text) => ({ a: text.slice(0, text.length / 2), b: text.slice(text.length / 2) }),
  },
  { name: "a blank in the middle", hold: (text) => ({ body: text.replace(/^.{18}/s, "$& ") }) },
  { name: "a zero-width space in the middle", hold: (text) => ({ body: text.replace(/^.{18}/s, "$&\u200b") }) },
  { name: "backwards", hold: (text) => ({ body: [...text].reverse().join("") }) },
];

const padding = "The bridge was built in 1907, and it is red. ".repeat(3);

function token(random: SeededRandom, length: number): string {
  return `eyJ${random.letters(length, word)}`;
}
