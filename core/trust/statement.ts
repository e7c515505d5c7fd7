import { canonicalJson } from "../action/canonical-json.ts";
import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import { parseStrictJson } from "../action/strict-json.ts";
import type { ExtensionFolder } from "./folder.ts";
import { TrustRefusalError } from "./refusal.ts";
import { type ExtensionClaim, extensionKinds } from "./verified-extension.ts";

export const payloadType = "application/vnd.in-toto+json";
export const statementType = "https://in-toto.io/Statement/v1";
const predicateType = "urn:agent-governance-gateway:extension:v1";

/** The signed claim about an extension: its files, its name and its validity. */
export interface Statement extends ExtensionClaim {
  /** SHA-256 in hex by path. */
  readonly subjects: ReadonlyMap<string, string>;
  /** RFC 3339, milliseconds, UTC. */
  readonly issuedAt: string;
  /** Null where it does not expire. */
  readonly expiresAt: string | null;
}

const bounds = { depth: 8, nodes: 4_096, stringLength: 4_096, reader: "exact" } as const;
const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const hexDigest = /^[0-9a-f]{64}$/;
const plainName = /^[a-z0-9][a-z0-9-]{0,63}$/;
const plainVersion = /^[0-9A-Za-z.+-]{1,64}$/;

/** Encodes the statement to be signed: an in-toto Statement in RFC 8785 JSON, subjects sorted by name. */
export function statementBytes(statement: Statement): Buffer {
  const { kind, name, version, sequence, issuedAt, expiresAt, subjects } = statement;
  const predicate = { kind, name, version, sequence, issued_at: issuedAt, expires_at: expiresAt };
  const subject = Array.from(subjects, ([file, sha256]) => ({ name: file, digest: { sha256 } }));
  return Buffer.from(canonicalJson({ _type: statementType, subject, predicateType, predicate }));
}

/** Reads a signed statement. Only its canonical encoding with exactly the known members is accepted. */
export function readStatement(payload: Buffer): Statement {
  const root = readObject(payload);
  require(hasExactly(root, ["_type", "predicate", "predicateType", "subject"]), "its members");
  require(root._type === statementType, "`_type`");
  if (root.predicateType !== predicateType) throw new TrustRefusalError("predicate_type");
  return { ...readPredicate(root.predicate), subjects: readSubjects(root.subject) };
}

/** Requires exactly the signed files, each with the signed bytes. */
export function compareSubjects({ subjects, kind }: Statement, folder: ExtensionFolder): void {
  if (kind !== folder.kind)
    throw new TrustRefusalError("kind_mismatch", `expected \`${folder.kind}\`, got \`${kind}\``);
  for (const name of subjects.keys()) {
    if (!folder.fileDigests.has(name)) throw new TrustRefusalError("file_missing", `\`${name}\``);
  }
  for (const [name, digest] of folder.fileDigests) {
    const signed = subjects.get(name);
    if (signed === undefined) throw new TrustRefusalError("file_unlisted", `\`${name}\``);
    if (signed !== digest) throw new TrustRefusalError("file_altered", `\`${name}\``);
  }
}

function readObject(payload: Buffer): JsonObject {
  let value: Json;
  try {
    value = parseStrictJson(payload, bounds);
  } catch {
    throw new TrustRefusalError("statement_malformed", "its JSON");
  }
  // Other encodings could be read differently under the same signature.
  if (!isJsonObject(value) || canonicalJson(value) !== payload.toString("utf8")) {
    throw new TrustRefusalError("statement_malformed", "its JSON");
  }
  return value;
}

function readPredicate(value: Json | undefined): Omit<Statement, "subjects"> {
  const members = ["expires_at", "issued_at", "kind", "name", "sequence", "version"];
  require(isJsonObject(value) && hasExactly(value, members), "`predicate`");
  const { kind, name, version, sequence, issued_at: issuedAt, expires_at: expiresAt } = value as JsonObject;
  const known = extensionKinds.find((each) => each === kind);
  require(known !== undefined, "`kind`");
  require(typeof name === "string" && plainName.test(name), "`name`");
  require(typeof version === "string" && plainVersion.test(version), "`version`");
  require(typeof sequence === "number" && Number.isSafeInteger(sequence) && sequence >= 0, "`sequence`");
  require(isInstant(issuedAt), "`issued_at`");
  require(expiresAt === null || isInstant(expiresAt), "`expires_at`");
  return { kind: known, name, version, sequence, issuedAt, expiresAt };
}

function readSubjects(value: Json | undefined): ReadonlyMap<string, string> {
  require(Array.isArray(value) && value.length > 0, "`subject`");
  const subjects = new Map<string, string>();
  let before = "";
  for (const each of value as readonly Json[]) {
    require(isJsonObject(each) && hasExactly(each, ["digest", "name"]), "`subject`");
    const { name, digest } = each;
    require(isJsonObject(digest) && hasExactly(digest, ["sha256"]), "`subject`");
    require(typeof digest.sha256 === "string" && hexDigest.test(digest.sha256), "`subject`");
    require(typeof name === "string" && name > before, "the order of `subject`");
    before = name;
    subjects.set(name, digest.sha256);
  }
  return subjects;
}

function isInstant(value: Json | undefined): value is string {
  return typeof value === "string" && instant.test(value) && !Number.isNaN(Date.parse(value));
}

/** `members` are sorted, as are the keys of canonical JSON. */
function hasExactly(value: JsonObject, members: readonly string[]): boolean {
  return Object.keys(value).join(" ") === members.join(" ");
}

function require(held: boolean, what: string): asserts held {
  if (!held) throw new TrustRefusalError("statement_malformed", what);
}
