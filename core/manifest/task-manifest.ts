import { canonicalJson, contentDigest } from "../action/canonical-json.ts";
import { GatewayError } from "../action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import { typeName } from "../action/json-rpc.ts";
import { type Mode, modes } from "../action/policy.ts";
import { didYouMean } from "../action/suggestion.ts";

/** The declared plan of a task. Members are named as in declarations, in the store and in the admin API. */
export interface TaskManifest {
  readonly task: string;
  /** The id of a key, or of its principal. */
  readonly principal: string;
  /** The label of one session; absent: every session of the principal. */
  readonly session?: string;
  /** Globs over `target/tool`. */
  readonly expected_tools: readonly string[];
  /** Globs over paths, URIs of resources, and `prompt:<name>`. */
  readonly expected_resources: readonly string[];
  /** Places that may be changed or sent to: globs over `host[:port]`, path roots, and globs over paths. `*`: anything. */
  readonly write_domains: readonly string[];
  /** Per session. */
  readonly max_actions: number;
  /** RFC 3339, milliseconds, UTC. */
  readonly expires_at: string;
  /** Absent: the configured mode. */
  readonly mode?: Mode;
}

const names = [
  "task",
  "principal",
  "session",
  "expected_tools",
  "expected_resources",
  "write_domains",
  "max_actions",
  "expires_at",
  "mode",
] as const;
type Name = (typeof names)[number];

const taskShape = /^[a-z0-9][a-z0-9._-]{0,63}$/;
const labelShape = /^[\x21-\x7e]{1,128}$/;
const patternShape = /^[^\p{Cc}\p{Cs}]{1,256}$/u;
const maxPatterns = 64;
const maxActions = 1_000_000;
const maxCharacters = 16_384;

/** Validates a manifest. Throws INVALID_PARAMS, which names the invalid member. */
export function readTaskManifest(value: Json): TaskManifest {
  if (!isJsonObject(value)) throw wrong("the manifest", "an object", value);
  refuseUnknown(value);
  const manifest: TaskManifest = {
    task: readText(value, "task", taskShape, "1 to 64 of `a-z 0-9 . _ -`, a letter or digit first"),
    principal: readText(value, "principal", labelShape, "the id of a key or of a principal"),
    ...(value.session === undefined
      ? {}
      : { session: readText(value, "session", labelShape, "1 to 128 visible ASCII characters") }),
    expected_tools: readPatterns(value, "expected_tools"),
    expected_resources: readPatterns(value, "expected_resources"),
    write_domains: readPatterns(value, "write_domains"),
    max_actions: readCount(value.max_actions),
    expires_at: readTime(value.expires_at),
    ...(value.mode === undefined ? {} : { mode: readMode(value.mode) }),
  };
  const { length } = canonicalJson({ ...manifest });
  if (length <= maxCharacters) return manifest;
  throw invalid(`expected a manifest of at most ${maxCharacters} characters, got ${length}`);
}

/** Returns `sha256:<hex>` over the RFC 8785 bytes of the manifest. */
export function manifestDigest(manifest: TaskManifest): string {
  return contentDigest(canonicalJson({ ...manifest }));
}

function refuseUnknown(value: JsonObject): void {
  const unknown = Object.keys(value).find((name) => !names.some((known) => known === name));
  if (unknown === undefined) return;
  throw invalid(`unknown member \`${quote(unknown)}\`${didYouMean(unknown, names)}`);
}

function readText(value: JsonObject, name: Name, shape: RegExp, expected: string): string {
  const text = value[name];
  if (typeof text === "string" && shape.test(text)) return text;
  throw wrong(`\`${name}\``, expected, text);
}

function readPatterns(value: JsonObject, name: Name): readonly string[] {
  const list = value[name];
  if (!Array.isArray(list)) throw wrong(`\`${name}\``, "a list (empty: nothing is expected)", list);
  if (list.length > maxPatterns) {
    throw invalid(`expected \`${name}\` to have at most ${maxPatterns} entries, got ${list.length}`);
  }
  const at = list.findIndex((each) => !(typeof each === "string" && patternShape.test(each)));
  if (at === -1) return list as readonly string[];
  throw wrong(`\`${name}[${at}]\``, "1 to 256 characters without control characters", list[at]);
}

function readCount(count: Json | undefined): number {
  if (Number.isSafeInteger(count) && (count as number) >= 1 && (count as number) <= maxActions) return count as number;
  throw wrong("`max_actions`", `an integer from 1 to ${maxActions}`, count);
}

function readTime(text: Json | undefined): string {
  const time = typeof text === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z$/.test(text) ? text : "";
  const date = new Date(time);
  // The engine reads the 30th of February as a day of March.
  const isReal = !Number.isNaN(date.getTime()) && date.toISOString().startsWith(time.slice(0, 19));
  if (isReal) return date.toISOString();
  throw wrong("`expires_at`", "a time like `2026-12-31T00:00:00Z`", text);
}

function readMode(text: Json): Mode {
  const mode = modes.find((each) => each === text);
  if (mode !== undefined) return mode;
  throw wrong("`mode`", "`enforce` or `shadow`", text);
}

function wrong(what: string, expected: string, got: Json | undefined): GatewayError {
  const told = typeof got === "string" || typeof got === "number" ? `\`${quote(String(got))}\`` : typeName(got);
  return invalid(`expected ${what} to be ${expected}, got ${told}`);
}

function quote(text: string): string {
  return text.slice(0, 64).toWellFormed();
}

function invalid(detail: string): GatewayError {
  return new GatewayError("INVALID_PARAMS", detail);
}
