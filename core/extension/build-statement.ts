import { contentDigest } from "../kernel/digest.ts";
import { isJsonObject, type Json, type JsonObject } from "../kernel/json.ts";
import { parseStrictJson } from "../kernel/strict-json.ts";
import type { BuildStatement } from "../kernel/verified-extension.ts";
import type { ExtensionFolder } from "./folder.ts";
import { isPlainText } from "./identity.ts";
import { Refusal } from "./refusal.ts";
import { statementType } from "./statement.ts";

/** Where an extension says how it was built. A file like any other: whoever signs the extension signs it too. */
export const buildFile = "build.intoto.json";
const slsaProvenance = "https://slsa.dev/provenance/v1";
const bounds = { depth: 32, nodes: 16_384, stringLength: 65_536, reader: "exact" } as const;

/**
 * Reads an in-toto Statement v1, SLSA provenance or another; null where there is none. It must name every module of the
 * extension, or a file where there is no module, by digest. What else it says is the builder's word, and not judged.
 */
export function readBuildStatement({ files, fileDigests }: ExtensionFolder): BuildStatement | null {
  const bytes = files.get(buildFile);
  if (bytes === undefined) return null;
  const { subject, predicateType, predicate } = parse(bytes);
  const builder = predicateType === slsaProvenance ? builderOf(predicate) : null;
  if (!isPlainText(predicateType) || (builder !== null && !isPlainText(builder))) throw new Refusal("build_malformed");
  const built = readSubjects(subject);
  const modules = [...fileDigests].filter(([name]) => name.endsWith(".wasm"));
  const wanted = modules.length > 0 ? modules : [...fileDigests].filter(([, digest]) => built.has(digest));
  const other = wanted.find(([, digest]) => !built.has(digest));
  if (other !== undefined) throw new Refusal("build_of_another", `\`${other[0]}\``);
  if (wanted.length === 0) throw new Refusal("build_of_another");
  return { digest: contentDigest(bytes), predicateType, builder };
}

function parse(bytes: Buffer): JsonObject {
  let value: Json;
  try {
    value = parseStrictJson(bytes, bounds);
  } catch {
    throw new Refusal("build_malformed");
  }
  if (!isJsonObject(value) || value._type !== statementType) throw new Refusal("build_malformed");
  return value;
}

/** Null where the predicate does not say; then there is nothing to tell. */
function builderOf(predicate: Json | undefined): Json {
  return member(member(member(predicate, "runDetails"), "builder"), "id") ?? null;
}

function readSubjects(value: Json | undefined): ReadonlySet<string> {
  if (!Array.isArray(value)) throw new Refusal("build_malformed");
  const digests = (value as readonly Json[]).map((each) => member(member(each, "digest"), "sha256"));
  return new Set(digests.filter((digest) => typeof digest === "string"));
}

function member(value: Json | undefined, key: string): Json | undefined {
  return isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}
