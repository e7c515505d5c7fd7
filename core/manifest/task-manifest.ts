import type { Static } from "@sinclair/typebox";
import type { ErrorObject } from "ajv/dist/2020.js";
import { canonicalJson, contentDigest } from "../action/canonical-json.ts";
import { GatewayError } from "../action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import { typeName } from "../action/json-rpc.ts";
import { modes } from "../action/policy.ts";
import { didYouMean } from "../action/suggestion.ts";
import { compileSchema } from "../config/check.ts";
import { Type } from "../config/type.ts";
import { closed, enumOf, matching } from "../operation/shape.ts";

const patterns = Type.Array(matching("^[^\\p{Cc}\\p{Cs}]{1,256}$", "1 to 256 characters without control characters"), {
  maxItems: 64,
  description: "a list of at most 64 globs (empty: nothing is expected)",
});

/** By tool and by argument, globs over its values. The bound of a manifest bounds their number. */
type ArgumentValues = Readonly<Record<string, Readonly<Record<string, string[]>>>>;

const argumentValues = Type.Unsafe<ArgumentValues>({
  type: "object",
  additionalProperties: { type: "object", additionalProperties: patterns },
  description:
    "tools (or `target/tool`), each with its arguments (or JSON Pointers), each with a list of at most 64 globs",
});

/**
 * The members of a declared plan of a task, named as in declarations, in the store and in the admin API. `session`: the label
 * of one session; absent: every session of the principal. `expected_tools`: globs over `target/tool`. `expected_resources`:
 * globs over paths, URIs of resources, and `prompt:<name>`. `write_domains`, the places that may be changed or sent to: globs
 * over `host[:port]`, path roots, and globs over paths. `arguments`: by tool or
 * `target/tool` and by argument or JSON Pointer, globs over its values. `expected_hosts`, `expected_addresses`: globs over the hosts
 * and addresses of every action; absent: any. `max_actions`: of all sessions of the principal that work on the task. `mode` absent: the configured one.
 */
export const manifestMembers = {
  task: matching("^[a-z0-9][a-z0-9._-]{0,63}$", "1 to 64 of `a-z 0-9 . _ -`, a letter or digit first"),
  principal: matching("^[\\x21-\\x7e]{1,128}$", "the id of a key or of a principal"),
  session: Type.Optional(matching("^[\\x21-\\x7e]{1,128}$", "1 to 128 visible ASCII characters")),
  expected_tools: patterns,
  expected_resources: patterns,
  write_domains: patterns,
  expected_hosts: Type.Optional(patterns),
  expected_addresses: Type.Optional(patterns),
  arguments: Type.Optional(argumentValues),
  max_actions: Type.Integer({ minimum: 1, maximum: 1_000_000, description: "an integer from 1 to 1000000" }),
  expires_at: matching(
    "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{3})?Z$",
    "a time like `2026-12-31T00:00:00Z`",
  ),
  mode: Type.Optional(enumOf(modes, { description: "`enforce` or `shadow`" })),
};

const schema = closed(manifestMembers);
const names = Object.keys(manifestMembers);
const maxCharacters = 16_384;

/** A declared plan of a task. */
export type TaskManifest = Readonly<Static<typeof schema>>;

/** Validates a manifest. Throws INVALID_PARAMS, which names the invalid member. */
export function readTaskManifest(value: Json): TaskManifest {
  if (!isJsonObject(value)) throw unexpected("the manifest", "an object", value);
  const validate = compileSchema(schema);
  if (!validate(value)) throw describeFault(value, validate.errors ?? []);
  const expiresAt = readTime(value.expires_at as string);
  const members = names.filter((name) => value[name] !== undefined).map((name) => [name, value[name]]);
  const manifest = { ...Object.fromEntries(members), expires_at: expiresAt } as TaskManifest;
  const { length } = canonicalJson({ ...manifest });
  if (length <= maxCharacters) return manifest;
  throw invalid(`expected a manifest of at most ${maxCharacters} characters, got ${length}`);
}

/** Returns `sha256:<hex>` over the RFC 8785 bytes of the manifest. */
export function manifestDigest(manifest: TaskManifest): string {
  return contentDigest(canonicalJson({ ...manifest }));
}

/** Normalizes a time. Throws for a day that the calendar does not have. */
function readTime(text: string): string {
  const date = new Date(text);
  // The engine reads the 30th of February as a day of March.
  const isReal = !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text.slice(0, 19));
  if (isReal) return date.toISOString();
  throw unexpected("`expires_at`", manifestMembers.expires_at.description ?? "", text);
}

/** Describes one of the errors of a manifest: an unknown member first, then the first invalid one. */
function describeFault(value: JsonObject, errors: readonly ErrorObject[]): GatewayError {
  const unknown = Object.keys(value).find((name) => !names.includes(name));
  if (unknown !== undefined) return invalid(`unknown member \`${quote(unknown)}\`${didYouMean(unknown, names)}`);
  const [error] = errors.toSorted((one, other) => names.indexOf(memberOf(one)) - names.indexOf(memberOf(other)));
  if (error === undefined) throw new TypeError("describeFault: expected an error");
  const name = memberOf(error) as keyof typeof manifestMembers;
  const member = value[name];
  const [, , index] = error.instancePath.split("/");
  if (index !== undefined && Array.isArray(member)) {
    return unexpected(`\`${name}[${index}]\``, patterns.items.description ?? "", member[Number(index)]);
  }
  if (error.keyword === "maxItems" && Array.isArray(member)) {
    return invalid(`expected \`${name}\` to have at most ${patterns.maxItems} entries, got ${member.length}`);
  }
  return unexpected(`\`${name}\``, manifestMembers[name].description ?? "", member);
}

function memberOf({ instancePath, params }: ErrorObject): string {
  return instancePath.split("/")[1] ?? String(params.missingProperty);
}

function unexpected(subject: string, expected: string, got: Json | undefined): GatewayError {
  const rendered = typeof got === "string" || typeof got === "number" ? `\`${quote(String(got))}\`` : typeName(got);
  return invalid(`expected ${subject} to be ${expected}, got ${rendered}`);
}

function quote(text: string): string {
  return text.slice(0, 64).toWellFormed();
}

function invalid(detail: string): GatewayError {
  return new GatewayError("INVALID_PARAMS", detail);
}
