import type { BatchOperation } from "../action/commit-hook.ts";
import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import type { JsonObject } from "../action/json.ts";
import type { Store } from "../store/open.ts";
import { type Declaration, declare, manifestKey, manifestRange, readDeclaration, writeDeclaration } from "./plan.ts";
import type { TaskManifest } from "./task-manifest.ts";

/** Records an event and its operations in one atomic batch. */
export interface ManifestLog {
  recordEvent(
    tenant: string,
    kind: "admin" | "session",
    detail: JsonObject,
    operations: readonly BatchOperation[],
  ): Promise<void>;
}

interface ManifestStoreOptions {
  readonly store: Store;
  readonly log: ManifestLog;
  readonly clock: Clock;
}

interface DeclarationPage {
  readonly items: readonly Declaration[];
  /** The cursor of the next page; null after the last. */
  readonly next: string | null;
}

/** The manifests of one tenant: a task has one scope, and a scope one task. */
interface TenantManifests {
  readonly byTask: Map<string, Declaration>;
  readonly byScope: Map<string, Declaration>;
  isChanging: boolean;
}

const maxPerTenant = 1_000;
const maxLifeMs = 366 * 86_400_000;

/** The manifests in force, at most 1,000 of a tenant. A change is in force once it is durable and on record. */
export class ManifestStore {
  readonly #options: ManifestStoreOptions;
  readonly #tenants = new Map<string, TenantManifests>();

  constructor(options: ManifestStoreOptions) {
    this.#options = options;
  }

  /** Loads the manifests of a tenant from the database. Rejects with STATE_UNUSABLE where an entry is damaged. */
  async load(tenant: string): Promise<void> {
    const manifests = this.#manifestsOf(tenant);
    for (const [key, text] of await this.#options.store.iterator(manifestRange(tenant)).all()) {
      put(manifests, readDeclaration(key, text));
    }
  }

  find(tenant: string, task: string): Declaration | undefined {
    return this.#tenants.get(tenant)?.byTask.get(task);
  }

  /** Finds the manifest of a session with this label, else that of all sessions of the principal. `principal`: a key id. */
  findForSession(tenant: string, principal: string, label: string | undefined): Declaration | undefined {
    const scopes = this.#tenants.get(tenant)?.byScope;
    if (scopes === undefined) return undefined;
    const own = label === undefined ? undefined : scopes.get(scopeOf(principal, label));
    return own ?? scopes.get(scopeOf(principal, undefined));
  }

  /** Lists the manifests of a tenant after the task `after`, by the names of their tasks. */
  list(tenant: string, limit: number, after = ""): DeclarationPage {
    const tasks = [...(this.#tenants.get(tenant)?.byTask.keys() ?? [])].filter((task) => task > after).sort();
    const page = tasks.slice(0, limit);
    const items = page.map((task) => this.find(tenant, task) as Declaration);
    return { items, next: tasks.length > limit ? (page.at(-1) ?? null) : null };
  }

  /**
   * Puts a manifest in force, replacing the one of the same task. `manifest.principal` is the id of a key. Rejects with
   * MANIFEST_CONFLICT where its task has another scope or its scope another task, with INVALID_PARAMS for a time that is
   * past or too far off, and with EVIDENCE_UNAVAILABLE where it cannot be recorded; then nothing changes.
   */
  async declare(tenant: string, manifest: TaskManifest, by: string): Promise<Declaration> {
    const now = this.#options.clock();
    checkLife(manifest, now);
    const manifests = this.#manifestsOf(tenant);
    const former = checkScope(manifests, manifest);
    const declaration = declare(manifest, by, new Date(now).toISOString());
    const key = manifestKey(tenant, manifest.task);
    const value = writeDeclaration(declaration);
    const replaced = former === undefined ? {} : { replaced: former.digest };
    const { digest } = declaration;
    const detail = { action: "manifest.declare", principal: by, manifest: { ...manifest }, digest, ...replaced };
    await this.#record(manifests, tenant, detail, { type: "put", key, value });
    put(manifests, declaration);
    return declaration;
  }

  /** Removes a manifest. Rejects with NOT_FOUND, and as `declare` does where that cannot be recorded. */
  async withdraw(tenant: string, task: string, by: string): Promise<Declaration> {
    const declaration = this.find(tenant, task);
    if (declaration === undefined) throw new GatewayError("NOT_FOUND", "no such manifest");
    const manifests = this.#manifestsOf(tenant);
    const detail = { action: "manifest.withdraw", principal: by, task, digest: declaration.digest };
    await this.#record(manifests, tenant, detail, { type: "del", key: manifestKey(tenant, task) });
    const { principal, session } = declaration.manifest;
    manifests.byTask.delete(task);
    manifests.byScope.delete(scopeOf(principal, session));
    return declaration;
  }

  /** Allows one change at a time, so that what was checked still holds when it is durable. */
  async #record(
    manifests: TenantManifests,
    tenant: string,
    detail: JsonObject,
    operation: BatchOperation,
  ): Promise<void> {
    if (manifests.isChanging) throw new GatewayError("MANIFEST_CONFLICT", "another change is in progress; try again");
    manifests.isChanging = true;
    try {
      await this.#options.log.recordEvent(tenant, "admin", detail, [operation]);
    } finally {
      manifests.isChanging = false;
    }
  }

  #manifestsOf(tenant: string): TenantManifests {
    const manifests = this.#tenants.get(tenant) ?? { byTask: new Map(), byScope: new Map(), isChanging: false };
    this.#tenants.set(tenant, manifests);
    return manifests;
  }
}

/** Returns the manifest that would be replaced. Throws MANIFEST_CONFLICT. */
function checkScope(
  { byTask, byScope }: TenantManifests,
  { task, principal, session }: TaskManifest,
): Declaration | undefined {
  const scope = scopeOf(principal, session);
  const former = byTask.get(task);
  if (former !== undefined && scopeOf(former.manifest.principal, former.manifest.session) !== scope) {
    throw new GatewayError("MANIFEST_CONFLICT", `task \`${task}\` has another scope; withdraw it first`);
  }
  const other = byScope.get(scope);
  if (other !== undefined && other.manifest.task !== task) {
    throw new GatewayError(
      "MANIFEST_CONFLICT",
      `this scope has the task \`${other.manifest.task}\`; withdraw it first`,
    );
  }
  if (former === undefined && byTask.size >= maxPerTenant) {
    throw new GatewayError("MANIFEST_CONFLICT", `expected at most ${maxPerTenant} manifests; withdraw some first`);
  }
  return former;
}

function checkLife({ expires_at: until }: TaskManifest, now: number): void {
  const left = Date.parse(until) - now;
  if (left > 0 && left <= maxLifeMs) return;
  const got = left > 0 ? "a later one" : "one that is past";
  throw new GatewayError("INVALID_PARAMS", `expected \`expires_at\` to be a time within a year, got ${got}`);
}

function put({ byTask, byScope }: TenantManifests, declaration: Declaration): void {
  const { task, principal, session } = declaration.manifest;
  byTask.set(task, declaration);
  byScope.set(scopeOf(principal, session), declaration);
}

function scopeOf(principal: string, session: string | undefined): string {
  return JSON.stringify([principal, session ?? null]);
}
