import type { IncomingMessage } from "node:http";
import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import { isJsonObject, type Json } from "../action/json.ts";
import type { Principal, SessionScope } from "../action/principal.ts";
import { RecentMap } from "../action/recent-map.ts";
import { singleHeader } from "../identity/key-ring.ts";
import { tenantPrefix } from "../store/key-range.ts";
import type { Store } from "../store/open.ts";
import type { ManifestLog, ManifestStore } from "./manifest-store.ts";
import { invalidReference, readReference, type TaskSigner } from "./reference.ts";

export interface TaskBindingOptions {
  readonly store: Store;
  readonly log: ManifestLog;
  readonly clock: Clock;
  readonly manifests: Pick<ManifestStore, "find" | "findForSession">;
  readonly signers: readonly TaskSigner[];
  /** True where a session has attempted anything, or is about to. */
  readonly hasActed: (tenant: string, session: string, principal: string) => boolean;
}

/** A binding that is in force, and being written. */
interface PendingBinding {
  readonly task: string;
  readonly recorded: Promise<void>;
}

const maxCached = 10_000;

/**
 * Determines the task of a session: the one that a signed reference bound it to, else that of the manifest for it.
 *
 * INVARIANT: a session that is bound by a reference stays bound to that task, even after the manifest is withdrawn.
 */
export class TaskBinding {
  readonly #options: TaskBindingOptions;
  readonly #pending = new Map<string, PendingBinding>();
  readonly #cached = new RecentMap<string | null>();

  constructor(options: TaskBindingOptions) {
    this.#options = options;
  }

  /** Returns null for a session without a task. Throws EVIDENCE_UNAVAILABLE where the store cannot be read. */
  taskOf({ tenant, keyId }: Principal, { id, label }: SessionScope): string | null {
    const key = bindingKey(tenant, id);
    let bound = this.#pending.get(key)?.task ?? this.#cached.get(key);
    if (bound === undefined) {
      bound = parseTask(this.#read(key));
      this.#cache(key, bound);
    }
    return bound ?? this.#options.manifests.findForSession(tenant, keyId, label)?.manifest.task ?? null;
  }

  /**
   * Binds a session to the task of a reference in its request; durable and on record when this resolves. Rejects with
   * TASK_REFERENCE for an invalid one, with TASK_BOUND where the session has another task or has acted without one, and
   * with EVIDENCE_UNAVAILABLE where it cannot be recorded; then nothing may be dispatched.
   */
  async bind(principal: Principal, scope: SessionScope, token: string): Promise<void> {
    const { claims, signer } = readReference(token, this.#options.signers, principal.tenant, this.#options.clock());
    this.#checkClaims(principal, claims);
    const { tenant } = principal;
    const key = bindingKey(tenant, scope.id);
    const { task, manifest } = claims;
    const current = this.taskOf(principal, scope);
    if (current === task) return this.#pending.get(key)?.recorded;
    if (current !== null) throw new GatewayError("TASK_BOUND", `the session works on \`${current}\``);
    if (this.#options.hasActed(tenant, scope.id, principal.id)) {
      throw new GatewayError("TASK_BOUND", "the session acted without a task; send the reference with the first call");
    }
    const detail = { event: "bound", session: scope.id, task, manifest, signer };
    const value = JSON.stringify({ task, manifest });
    const recorded = this.#options.log.recordEvent(tenant, "session", detail, [{ type: "put", key, value }]);
    this.#pending.set(key, { task, recorded });
    try {
      await recorded;
      this.#cache(key, task);
    } finally {
      this.#pending.delete(key);
    }
  }

  #checkClaims(principal: Principal, claims: { principal: string; task: string; manifest: string }): void {
    if (claims.principal !== principal.keyId && claims.principal !== principal.id) {
      throw invalidReference("it is for another principal");
    }
    const declared = this.#options.manifests.find(principal.tenant, claims.task);
    if (declared === undefined || declared.manifest.principal !== principal.keyId) {
      throw invalidReference("its task has no manifest for this principal");
    }
    if (declared.digest !== claims.manifest) throw invalidReference("its task has a newer manifest");
  }

  #read(key: string): string | undefined {
    try {
      return this.#options.store.getSync(key);
    } catch (cause) {
      throw new GatewayError("EVIDENCE_UNAVAILABLE", "the tasks of sessions cannot be read", { cause });
    }
  }

  #cache(key: string, task: string | null): void {
    this.#cached.set(key, task);
    this.#cached.forgetOldest(maxCached);
  }
}

/** The member of `_meta` that carries a task reference, as the header `X-Gateway-Task` does. It is not forwarded. */
const taskMetaKey = "io.agent-governance-gateway/task";

/**
 * Binds a session to the task that a request refers to, if any. `meta`: `params._meta` of an MCP request. Rejects as
 * `TaskBinding.bind` does, and with TASK_REFERENCE for two references that differ.
 */
export async function bindTask(
  tasks: TaskBinding,
  { rawHeaders }: IncomingMessage,
  principal: Principal,
  scope: SessionScope,
  meta?: Json,
): Promise<void> {
  const inHeader = singleHeader(rawHeaders, "x-gateway-task");
  const inMeta = isJsonObject(meta) && Object.hasOwn(meta, taskMetaKey) ? meta[taskMetaKey] : undefined;
  if (inMeta !== undefined && typeof inMeta !== "string") {
    throw new GatewayError("TASK_REFERENCE", `expected \`${taskMetaKey}\` to be a string`);
  }
  if (inHeader !== undefined && inMeta !== undefined && inHeader !== inMeta) {
    throw new GatewayError("TASK_REFERENCE", `expected the header and \`${taskMetaKey}\` to be equal`);
  }
  const token = inHeader ?? inMeta;
  if (token !== undefined) await tasks.bind(principal, scope, token);
}

function bindingKey(tenant: string, session: string): string {
  return `${tenantPrefix(tenant)}task-binding/${encodeURIComponent(session)}`;
}

/** Throws for a damaged entry: the limits of the session are unknown then. */
function parseTask(text: string | undefined): string | null {
  if (text === undefined) return null;
  const { task } = JSON.parse(text) as { readonly task?: unknown };
  if (typeof task === "string") return task;
  throw new TypeError("taskOf: expected the entry of a binding to name a task");
}
