import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import type { Principal, SessionScope } from "../action/principal.ts";
import { RecentMap } from "../action/recent-map.ts";
import { tenantPrefix } from "../store/key-range.ts";
import type { ManifestBook, ManifestLog, ManifestStore } from "./manifest-store.ts";
import { readReference, refused, type TaskSigner } from "./reference.ts";

export interface TaskBindingOptions {
  readonly store: ManifestStore;
  readonly log: ManifestLog;
  readonly clock: Clock;
  readonly manifests: Pick<ManifestBook, "find" | "covering">;
  readonly signers: readonly TaskSigner[];
  /** Whether a session has attempted anything, or is about to. */
  readonly hasActed: (tenant: string, session: string, principal: string) => boolean;
}

/** A binding on its way to the disk. It is in force. */
interface Held {
  readonly task: string;
  readonly recorded: Promise<void>;
}

const maxRemembered = 10_000;

/**
 * Which task a session works on: the one that a signed reference bound it to, else that of the manifest for it.
 *
 * INVARIANT: a session that is bound by a reference stays bound to that task, whatever becomes of the manifest.
 */
export class TaskBinding {
  readonly #options: TaskBindingOptions;
  readonly #held = new Map<string, Held>();
  readonly #remembered = new RecentMap<string | null>();

  constructor(options: TaskBindingOptions) {
    this.#options = options;
  }

  /** Null: none. Throws what the store throws where it cannot be read: then nobody knows, and nothing may be dispatched. */
  taskOf({ tenant, keyId }: Principal, { id, label }: SessionScope): string | null {
    const bound = this.#boundTo(bindingKey(tenant, id));
    return bound ?? this.#options.manifests.covering(tenant, keyId, label)?.manifest.task ?? null;
  }

  /**
   * Binds a session to the task of a reference that came with its request; durable and on record when this resolves.
   * Rejects with TASK_REFERENCE for one that is not good here, with TASK_BOUND where the session has another task or has
   * acted without one, and with EVIDENCE_UNAVAILABLE where it cannot be recorded; then nothing may be dispatched.
   */
  async bind(principal: Principal, scope: SessionScope, token: string): Promise<void> {
    const { claims, signer } = readReference(token, this.#options.signers, principal.tenant, this.#options.clock());
    this.#check(principal, claims);
    const { tenant } = principal;
    const key = bindingKey(tenant, scope.id);
    const { task, manifest } = claims;
    const current = this.taskOf(principal, scope);
    if (current === task) return this.#held.get(key)?.recorded;
    if (current !== null) throw new GatewayError("TASK_BOUND", `it works on \`${current}\``);
    if (this.#options.hasActed(tenant, scope.id, principal.id)) {
      throw new GatewayError("TASK_BOUND", "it has acted without one; a reference comes with the first call");
    }
    const detail = { event: "bound", session: scope.id, task, manifest, signer };
    const value = JSON.stringify({ task, manifest });
    const recorded = this.#options.log.recordEvent(tenant, "session", detail, [{ type: "put", key, value }]);
    this.#held.set(key, { task, recorded });
    try {
      await recorded;
      this.#remember(key, task);
    } finally {
      this.#held.delete(key);
    }
  }

  #check(principal: Principal, claims: { principal: string; task: string; manifest: string }): void {
    if (claims.principal !== principal.keyId && claims.principal !== principal.id) {
      throw refused("it is for another principal");
    }
    const declared = this.#options.manifests.find(principal.tenant, claims.task);
    if (declared === undefined || declared.manifest.principal !== principal.keyId) {
      throw refused("its task has no manifest for this principal");
    }
    if (declared.digest !== claims.manifest) throw refused("its task has another manifest by now");
  }

  #boundTo(key: string): string | null {
    const held = this.#held.get(key);
    if (held !== undefined) return held.task;
    const remembered = this.#remembered.get(key);
    if (remembered !== undefined) return remembered;
    const task = readTask(this.#options.store.getSync(key));
    this.#remember(key, task);
    return task;
  }

  #remember(key: string, task: string | null): void {
    this.#remembered.set(key, task);
    this.#remembered.forgetOldest(maxRemembered);
  }
}

function bindingKey(tenant: string, session: string): string {
  return `${tenantPrefix(tenant)}task-binding/${encodeURIComponent(session)}`;
}

/** What no gateway wrote throws: nobody knows then what the session may do. */
function readTask(text: string | undefined): string | null {
  if (text === undefined) return null;
  const { task } = JSON.parse(text) as { readonly task?: unknown };
  if (typeof task === "string") return task;
  throw new TypeError("taskOf: expected the entry of a binding to name a task");
}
