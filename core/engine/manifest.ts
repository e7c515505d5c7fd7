import { isUtf8 } from "node:buffer";
import type { Static } from "@sinclair/typebox";
import { GatewayError } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import { maxApprovals, type PolicyRef, type Severity, severities } from "../action/policy.ts";
import { parseDocument } from "../config/document.ts";
import { FaultList, type Place } from "../config/fault.ts";
import { type EngineType, engineTypes } from "../config/policy-schema.ts";
import { editorSchema } from "../config/reference.ts";
import { enumeration, integer, list, object, optional, string } from "../config/schema.ts";
import { checkNode } from "../policy/extension-file.ts";
import { checkClaim } from "../policy/pack.ts";
import { metadataSchema, pluginCaseSchema, sequenceSchema } from "../policy/schema.ts";
import { VerifiedExtension } from "../trust/verified-extension.ts";
import { defaultRule, maxReasonMessage, reasonIdPattern } from "./engine-reason.ts";

const manifestFile = "engine.yaml";

const defaultEntrypoint = "gateway/decision";

const manifestSchema = object("Policies of another engine.", {
  apiVersion: enumeration("The version of the format.", ["gateway/v1"]),
  kind: enumeration("The kind of the file.", ["PolicyEngine"]),
  engine: enumeration("The engine that evaluates the policies.", engineTypes),
  entrypoint: optional(
    string(
      `\`rego\`, \`opa-server\`: the rule that decides, by its path. \`${defaultEntrypoint}\` where it is left out.`,
      {
        pattern: "^[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*$",
        maxLength: 256,
      },
    ),
  ),
  deadline_ms: optional(
    integer(
      "`opa-server`, `cedar-agent`: time for one answer; `policy.deadline_ms` where that is less, or this left out.",
      {
        minimum: 1,
        maximum: 60_000,
      },
    ),
  ),
  policies: list(
    "`cedar-agent`: what to say of the server's policies. One that is not listed allows or blocks, in words of the gateway.",
    object("One policy.", {
      id: string("Its id on the server, and the last part of the rule's id.", { pattern: reasonIdPattern.source }),
      decision: enumeration("`review`, of a `permit`: a person decides.", ["effect", "review"], { default: "effect" }),
      message: optional(
        string("The message to agents and reviewers.", { format: "printable", maxLength: maxReasonMessage }),
      ),
      severity: optional(enumeration("The severity of the finding.", severities)),
      approvals: optional(integer("Reviewers of a review.", { minimum: 1, maximum: maxApprovals })),
    }),
    { default: [], maxItems: 500 },
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
  readonly engine: EngineType;
  readonly entrypoint: string;
  /** The deadline of a server's answer; null where the manifest states none. */
  readonly deadlineMs: number | null;
  /** By id. */
  readonly policies: ReadonlyMap<string, NamedPolicy>;
}

/** A folder's words about one policy of its server. */
export interface NamedPolicy {
  readonly isReview: boolean;
  readonly message?: string;
  readonly severity?: Severity;
  readonly approvals?: number;
}

/** Reads `engine.yaml` from the verified files. Throws ENGINE_INVALID with every fault, also for another engine than `engine`. */
export function readEngine(path: string, engine: EngineType | null, extension: VerifiedExtension): EngineSource {
  const faults = new FaultList(manifestFile);
  const files = VerifiedExtension.open(extension);
  const bytes = files.get(manifestFile);
  if (bytes === undefined || !isUtf8(bytes)) {
    const got = bytes === undefined ? "no such file" : "other bytes";
    throw new GatewayError(
      "ENGINE_INVALID",
      `\`${path}\`: expected a manifest \`${manifestFile}\` in UTF-8, got ${got}`,
    );
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
  const alien = Object.entries(form).filter(
    ([key, value]) => isGiven(value) && ownKeys[key]?.includes(form.engine) === false,
  );
  for (const [key] of alien)
    faults.addAt(root.place, `expected no \`${key}\`, which \`engine: ${form.engine}\` does not have`);
  checkClaim({ name, version, sequence, place: root.place }, extension, faults);
  faults.throwIfAny("ENGINE_INVALID", path);
  const { digest, signer } = extension;
  const ref: PolicyRef = { kind: "engine", name, version, digest, signer };
  return {
    ...{ ref, sequence, extension, files, engine: form.engine },
    entrypoint: form.entrypoint ?? defaultEntrypoint,
    deadlineMs: form.deadline_ms,
    policies: readPolicies(form.policies, root.place, path),
  };
}

/** Keys that belong to some engines alone. */
const ownKeys: Readonly<Record<string, readonly EngineType[]>> = {
  entrypoint: ["rego", "opa-server"],
  deadline_ms: ["opa-server", "cedar-agent"],
  policies: ["cedar-agent"],
};

function isGiven(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : value !== null;
}

type PolicyForms = Static<typeof manifestSchema>["policies"];

function readPolicies(forms: PolicyForms, place: Place, path: string): ReadonlyMap<string, NamedPolicy> {
  const faults = new FaultList(manifestFile);
  const policies = new Map<string, NamedPolicy>();
  for (const { id, decision, message, severity, approvals } of forms) {
    if (policies.has(id)) faults.addAt(place, `\`policies\`: expected an id of its own, got \`${id}\` twice`);
    if (id === defaultRule) faults.addAt(place, `\`policies\`: expected another id, got \`${id}\``);
    if (approvals !== null && decision !== "review")
      faults.addAt(place, `\`policies\`: expected \`approvals\` only with \`decision: review\`, got it for \`${id}\``);
    policies.set(id, {
      isReview: decision === "review",
      ...(message === null ? {} : { message }),
      ...(severity === null ? {} : { severity }),
      ...(approvals === null ? {} : { approvals }),
    });
  }
  faults.throwIfAny("ENGINE_INVALID", path);
  return policies;
}

/** The JSON Schemas for editors, by file name. */
export function engineEditorSchemas(): ReadonlyMap<string, JsonObject> {
  const tests = object("Tests of an engine's policies.", { cases: list("The cases.", pluginCaseSchema) });
  return new Map([
    ["engine.schema.json", editorSchema("engine.yaml of an engine's policies", manifestSchema)],
    ["engine-tests.schema.json", editorSchema("Tests of an engine's policies", tests)],
  ]);
}
