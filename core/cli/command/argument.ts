import { InvalidArgumentError, Option } from "commander";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import { readPastTime } from "../../action/past-time.ts";
import { VerifyingKey } from "../../action/signing-key.ts";
import { type UsageDimension, usageDimensions } from "../../usage/usage-report.ts";

/** Parsers of arguments and options, and the options that many commands share. Imports nothing that is slow to load. */

export const jsonOption: Option = new Option("--json", "print JSON");

export const adminOption: Option = new Option(
  "--admin <url>",
  "admin port of the gateway; the key is read from GATEWAY_API_KEY",
)
  .env("GATEWAY_ADMIN_URL")
  .default("http://127.0.0.1:8081");

export const urlOption: Option = new Option("--url <url>", "gateway port; the key is read from GATEWAY_API_KEY")
  .env("GATEWAY_URL")
  .default("http://127.0.0.1:8080");

/** The data folder and the ports of local mode. */
export const localOptions: readonly Option[] = [
  new Option("-d, --data <folder>", "local mode: data folder (default: data)")
    .env("GATEWAY_DATA_DIR")
    .conflicts("config"),
  new Option("-p, --port <number>", "local mode: first of three ports in a row (default: 8080)")
    .conflicts("config")
    .argParser(parseFirstPort),
];

export const byOption: Option = new Option(
  "--by <name>",
  "person or process that asked for it; recorded (default: the current user)",
).argParser(parseText);

export const witnessOption: Option = new Option("--witness <place>", "notes of a witness: a folder or URL; repeatable")
  .argParser(addText)
  .default([]);

/** Beside a host's own name: the registries of companies have public names and private addresses. */
export const privateHostOption: Option = new Option(
  "--private-host <host>",
  "host that may have private addresses, or `*.` and a domain; repeatable",
)
  .argParser(addText)
  .default([]);

/** A text that goes into a record. */
export function parseText(text: string): string {
  if (text.length > 0 && text.length <= maxText && text.isWellFormed()) return text;
  throw new InvalidArgumentError(`expected 1 to ${maxText} characters`);
}

const maxText = 1_024;

/** Returns the parser of a text that must match `pattern`. */
function matching(pattern: RegExp, expected: string): (text: string) => string {
  return (text) => {
    if (pattern.test(text)) return text;
    throw new InvalidArgumentError(`expected ${expected}`);
  };
}

/** The name of a session as the admin port takes it. What begins as no id does, is a label; `label:` begins any label. */
export function parseSession(text: string): string {
  if (!/^[\x21-\x7e]{1,134}$/.test(text))
    throw new InvalidArgumentError("expected a session's label, its id, like `session-v1-…`, or the beginning of that");
  if (text.startsWith("session-v1-")) return text;
  const label = text.replace(/^label:/, "");
  // A path has no room for other characters.
  return /^[\w.:-]+$/.test(label) ? `label:${label}` : `label64:${Buffer.from(label).toString("base64url")}`;
}

export const parseLabel = matching(/^[\x21-\x7e]{1,128}$/, "1 to 128 visible ASCII characters");
export const parseApprovalId = matchingHex("an approval's id", "apr_", 32);
export const parseTicketId = matchingHex("a ticket's id", "tkt_", 32);
export const parseDefinitionId = matchingHex("a withheld definition's id", "def_", 32);
export const parseMessageId = matching(/^msg_[0-9a-f-]{36}$/, "a webhook's message id: `msg_` and a UUID");
export const parsePrincipal = matchingHex("a principal's id", "principal-v1-", 64);

function matchingHex(what: string, prefix: string, digits: number): (text: string) => string {
  const pattern = new RegExp(`^${prefix}[0-9a-f]{${digits}}$`);
  return matching(pattern, `${what}: \`${prefix}\` and ${digits} hex digits`);
}

/** That of names in the configuration. */
const namePattern = /^[a-z0-9][a-z0-9._-]{0,63}$/;

export const parseTask = matching(namePattern, "the name of a task: 1 to 64 of `a-z 0-9 . _ -`");
/** A name of the configuration: of a key or a tenant. */
export const parseName = matching(namePattern, "1 to 64 of `a-z 0-9 . _ -`, a letter or digit first");

/** Returns the parser of a number from 1. */
function wholeNumber(max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (Number.isInteger(value) && value >= 1 && value <= max) return value;
    throw new InvalidArgumentError(`expected a whole number from 1 to ${max}`);
  };
}

export const parseCount = wholeNumber(1_000_000);

/** Seconds until something expires: 31 days at most. */
export const parseLifetime = wholeNumber(31 * 86_400);

export function parseSeconds(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("expected whole seconds");
}

/** Seconds that a hook waits for a review: clients of HTTP wait for five minutes at most. */
export function parseHookWait(text: string): number {
  const seconds = /^\d{1,3}$/.test(text) ? Number(text) : Number.NaN;
  if (seconds <= 280) return seconds;
  throw new InvalidArgumentError("expected 0 to 280 seconds");
}

/** Seconds for a server to start: its package may have to be fetched first. */
export function parseServerWait(text: string): number {
  const seconds = /^\d{1,3}$/.test(text) ? Number(text) : Number.NaN;
  if (seconds >= 1 && seconds <= 600) return seconds;
  throw new InvalidArgumentError("expected 1 to 600 seconds");
}

/** The sequence number of a record. */
export function parseSeq(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("expected the number of a record");
}

/** The first of three ports in a row, or 0 for any free ones. */
export function parseFirstPort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (port <= maxFirstPort) return port;
  throw new InvalidArgumentError(`expected 1 to ${maxFirstPort}, or 0 for any free ports`);
}

const maxFirstPort = 65_533;

/** The first of three ports that a client's configuration can name. */
export function parseServingPort(text: string): number {
  const port = parseFirstPort(text);
  if (port > 0) return port;
  throw new InvalidArgumentError(`expected 1 to ${maxFirstPort}`);
}

/** A day in UTC. */
export function parseDay(text: string): string {
  const ms = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text)) return text;
  throw new InvalidArgumentError("expected a day like `2026-11-01`");
}

/** A time in UTC, to the second, in the form that records have. */
export function parseTime(text: string): string {
  const ms = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms)) throw new InvalidArgumentError("expected a time like `2027-01-01T00:00:00Z`");
  return new Date(ms).toISOString();
}

/** A time that is past, in the form that records have. */
export function parsePastTime(text: string): string {
  const time = readPastTime(text, Date.now(), () => {
    throw new InvalidArgumentError("expected a past time");
  });
  if (time !== undefined) return time;
  throw new InvalidArgumentError("expected an RFC 3339 time: 2026-01-31T00:00:00Z");
}

/** Some of the dimensions, in the order in which the gateway sorts by them. */
export function parseDimensions(text: string): readonly UsageDimension[] {
  const names = text.split(",");
  const known = usageDimensions.filter((dimension) => names.includes(dimension));
  if (known.length === names.length) return known;
  throw new InvalidArgumentError(`expected some of ${usageDimensions.join(",")}, each once`);
}

export function parseJson(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    throw new InvalidArgumentError("expected JSON");
  }
}

export function parseJsonObject(text: string): JsonObject {
  const value = parseJson(text);
  if (isJsonObject(value)) return value;
  throw new InvalidArgumentError("expected a JSON object");
}

export function parsePublicKey(text: string): VerifyingKey {
  const key = VerifyingKey.parse(text);
  if (key !== undefined) return key;
  throw new InvalidArgumentError("expected the base64 of the 32 bytes of an Ed25519 public key");
}

/** One more of a repeatable public key. */
export function addPublicKey(text: string, keys: readonly VerifyingKey[]): readonly VerifyingKey[] {
  return [...keys, parsePublicKey(text)];
}

/** One more of a repeatable text. */
export function addText(text: string, texts: readonly string[]): readonly string[] {
  return [...texts, text];
}

/** One more pattern of fields to erase. */
export function addFieldPattern(text: string, patterns: readonly string[] = []): readonly string[] {
  if (/^(?:\*|(?:arguments|output|facts)\.[^\p{Cc}\p{Cs}]{0,256})$/u.test(text)) return [...patterns, text];
  throw new InvalidArgumentError("expected `arguments.<name>`, `output.<name>`, `facts.<name>` or `*`");
}
