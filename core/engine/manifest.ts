import { isUtf8 } from "node:buffer";
import { GatewayError } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import type { PolicyRef } from "../action/policy.ts";
import { parseDocument } from "../config/document.ts";
import { FaultList } from "../config/fault.ts";
import type { EngineType } from "../config/policy-schema.ts";
import { editorSchema } from "../config/reference.ts";
import { enumeration, list, object, optional, string } from "../config/schema.ts";
import { checkNode } from "../policy/extension-file.ts";
import { checkClaim } from "../policy/pack.ts";
import { metadataSchema, pluginCaseSchema, sequenceSchema } from "../policy/schema.ts";
import { VerifiedExtension } from "../trust/verified-extension.ts";

const manifestFile = "engine.yaml";

/** The engines whose policies are a folder of files. */
export const folderEngines = ["cedar", "rego"] as const satisfies readonly EngineType[];
export type FolderEngine = (typeof folderEngines)[number];

const defaultEntrypoint = "gateway/decision";

const manifestSchema = object("Policies of another engine.", {
  apiVersion: enumeration("The version of the format.", ["gateway/v1"]),
  kind: enumeration("The kind of the file.", ["PolicyEngine"]),
  engine: enumeration("The engine that evaluates the policies.", folderEngines),
  entrypoint: optional(
    string(`\`rego\`: the rule that decides, by its path. \`${defaultEntrypoint}\` where it is left out.`, {
      pattern: "^[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*$",
      maxLength: 256,
    }),
  ),
  metadata: metadataSchema,
  sequence: sequenceSchema,
});

/** A folder of policies whose manifest is read and agrees with what was signed. */
export interface EngineSource {
  readonly ref: PolicyRef;
  /** Increases with each release; 0 by default. */
  readonly sequence: number;
  readonly extension: VerifiedExtension;
  readonly files: ReadonlyMap<string, Buffer>;
}

/** Reads `engine.yaml` from the verified files. Throws ENGINE_INVALID with every fault, also for another engine than `engine`. */
export function readEngine(
  path: string,
  engine: FolderEngine | null,
  extension: VerifiedExtension,
): EngineSource & {
  readonly engine: FolderEngine;
  readonly entrypoint: string;
} {
  const faults = new FaultList(manifestFile);
  const files = VerifiedExtension.open(extension);
  const bytes = files.get(manifestFile);
  if (bytes === undefined || !isUtf8(bytes)) {
    throw new GatewayError("ENGINE_INVALID", `\`${path}\`: expected a manifest \`${manifestFile}\` in UTF-8`);
  }
  const root = parseDocument(manifestFile, bytes.toString("utf8"), faults);
  const form = root === undefined ? undefined : checkNode(root, manifestSchema, faults);
  faults.throwIfAny("ENGINE_INVALID", path);
  if (root === undefined || form === undefined) throw new TypeError("readEngine: expected a manifest or a fault");
  const { metadata, sequence } = form;
  const { name, version } = metadata;
  if (engine !== null && form.engine !== engine) {
    faults.addAt(root.place, `expected \`engine: ${engine}\`, as the configuration says, got \`${form.engine}\``);
  }
  if (form.engine !== "rego" && form.entrypoint !== null) {
    faults.addAt(root.place, `expected no \`entrypoint\`, which \`engine: ${form.engine}\` does not have`);
  }
  checkClaim({ name, version, sequence, place: root.place }, extension, faults);
  faults.throwIfAny("ENGINE_INVALID", path);
  const { digest, signer } = extension;
  const ref: PolicyRef = { kind: "engine", name, version, digest, signer };
  return { engine: form.engine, entrypoint: form.entrypoint ?? defaultEntrypoint, ref, sequence, extension, files };
}

/** The JSON Schemas for editors, by file name. */
export function engineEditorSchemas(): ReadonlyMap<string, JsonObject> {
  const tests = object("Tests of an engine's policies.", { cases: list("The cases.", pluginCaseSchema) });
  return new Map([
    ["engine.schema.json", editorSchema("engine.yaml of an engine's policies", manifestSchema)],
    ["engine-tests.schema.json", editorSchema("Tests of an engine's policies", tests)],
  ]);
}
