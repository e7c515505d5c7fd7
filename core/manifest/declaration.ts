import { GatewayError } from "../kernel/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../kernel/json.ts";
import { manifestDigest, readTaskManifest, type TaskManifest } from "../kernel/task-manifest.ts";
import { lastPart, rangeOf, tenantPrefix } from "../kernel/tenant-key.ts";
import { Plan } from "./plan.ts";

/** A manifest in force, and who declared it. */
export interface Declaration {
  readonly manifest: TaskManifest;
  readonly digest: string;
  readonly plan: Plan;
  /** The principal who declared it. */
  readonly by: string;
  /** RFC 3339, milliseconds, UTC. */
  readonly at: string;
}

/** As the store keeps it, and as the admin port tells it beside its tenant. */
export interface DeclarationView extends TaskManifest {
  readonly digest: string;
  readonly declared_by: string;
  readonly declared_at: string;
}

export function declare(manifest: TaskManifest, by: string, at: string): Declaration {
  return { manifest, digest: manifestDigest(manifest), plan: new Plan(manifest), by, at };
}

export function viewOf({ manifest, digest, by, at }: Declaration): DeclarationView {
  return { ...manifest, digest, declared_by: by, declared_at: at };
}

/** The prefix of all manifests of a tenant. */
export function manifestRange(tenant: string): ReturnType<typeof rangeOf> {
  return rangeOf(`${tenantPrefix(tenant)}manifest/`);
}

export function manifestKey(tenant: string, task: string): string {
  return `${tenantPrefix(tenant)}manifest/${encodeURIComponent(task)}`;
}

export function writeDeclaration(declaration: Declaration): string {
  return JSON.stringify(viewOf(declaration));
}

/** Throws STATE_UNUSABLE for an entry that no gateway wrote: nobody knows then what its task's sessions may do. */
export function readDeclaration(key: string, text: string): Declaration {
  try {
    const { digest, declared_by: by, declared_at: at, ...manifest } = membersOf(JSON.parse(text) as Json);
    const declaration = declare(readTaskManifest(manifest), String(by), String(at));
    if (declaration.digest === digest) return declaration;
  } catch (cause) {
    throw damaged(key, cause);
  }
  throw damaged(key);
}

function membersOf(value: Json): JsonObject {
  if (isJsonObject(value)) return value;
  throw new TypeError("expected an object");
}

function damaged(key: string, cause?: unknown): GatewayError {
  const task = decodeURIComponent(lastPart(key));
  return new GatewayError("STATE_UNUSABLE", `the entry of manifest \`${task}\` is damaged`, { cause });
}
