import { isUtf8 } from "node:buffer";
import { setImmediate as nextTurn } from "node:timers/promises";
import { GatewayError } from "../../action/error.ts";
import type { Json } from "../../action/json.ts";
import { FaultList } from "../../config/fault.ts";
import { defaultRule } from "../engine-reason.ts";
import type { EngineSource } from "../manifest.ts";
import { type CedarContent, CedarEngine } from "./cedar-engine.ts";
import { collectEntities, EntityGraph } from "./entity-graph.ts";
import { type Cedar, openCedar } from "./library.ts";
import { policyFile, readPolicies, validatePolicies } from "./policy-text.ts";
import { type CedarSchema, readEntities, readSchema } from "./schema.ts";

/**
 * Makes an engine of a folder with `policies.cedar`, its schema and, where it is there, `entities.json`. Rejects with
 * ENGINE_INVALID with every fault: what Cedar cannot read, and what its validator finds or warns of.
 */
export async function loadCedar(path: string, source: EngineSource): Promise<CedarEngine> {
  const faults = new FaultList("");
  const files = source.files;
  try {
    const read = await readFolder(await openCedar(), files, faults);
    faults.throwIfAny("ENGINE_INVALID", path);
    if (read === undefined) throw new TypeError("loadCedar: expected content or a fault");
    return await CedarEngine.open({ name: source.ref.name, ...read });
  } catch (cause) {
    // The library traps on text that is nested too deeply, and throws on text that it cannot represent.
    if (cause instanceof GatewayError || cause instanceof TypeError) throw cause;
    const detail = `\`${path}\`: expected text that Cedar can read, got text on which it broke off; is it nested too deeply?`;
    throw new GatewayError("ENGINE_INVALID", detail, { cause });
  }
}

/** Reads the schema of a folder without policies. Rejects with ENGINE_INVALID. */
export async function loadSchema(path: string, { files }: EngineSource): Promise<CedarSchema> {
  const faults = new FaultList("");
  const schema = readSchema(await openCedar(), files, faults);
  faults.throwIfAny("ENGINE_INVALID", path);
  if (schema === undefined) throw new TypeError("loadSchema: expected a schema or a fault");
  return schema;
}

async function readFolder(
  cedar: Cedar,
  files: ReadonlyMap<string, Buffer>,
  faults: FaultList,
): Promise<Omit<CedarContent, "name"> | undefined> {
  const bytes = files.get(policyFile);
  if (bytes === undefined || !isUtf8(bytes)) {
    faults.addAt({ file: policyFile, line: 1, column: 1 }, "expected this file, in UTF-8");
    return undefined;
  }
  const text = bytes.toString("utf8");
  // A reload happens while requests are served: yield to them between steps.
  const schema = readSchema(cedar, files, faults);
  await nextTurn();
  const policies = readPolicies(cedar, text, faults);
  await nextTurn();
  if (schema === undefined) return undefined;
  if (policies.length > 0) validatePolicies(cedar, schema.text, text, faults);
  await nextTurn();
  const taken = policies.find(({ id }) => id === defaultRule);
  if (taken !== undefined) faults.addAt(taken.place, `\`@id\`: expected another id, got \`${defaultRule}\``);
  const entities = readEntities(cedar, schema.text, files, faults);
  const named = new Set<string>();
  for (const { json } of policies) collectEntities(json as unknown as Json, named);
  return { schema, policies, graph: new EntityGraph(entities, named) };
}
