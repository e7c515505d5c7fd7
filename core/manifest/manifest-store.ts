import type { AbstractLevel } from "abstract-level";
import type { BatchOperation } from "../action/commit-hook.ts";
import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import type { JsonObject } from "../action/json.ts";
import { type Declaration, declare, manifestKey, manifestRange, readDeclaration, writeDeclaration } from "./plan.ts";
import type { TaskManifest } from "./task-manifest.ts";

/** The database as this folder reads it; it writes through the evidence alone. */
export type ManifestStore = AbstractLevel<string | Buffer | Uint8Array, string, string>;

/** Where an event and what it tells of become durable together, or not at all. */
export interface ManifestLog {
  recordEvent(
    tenant: string,
    kind: "admin" | "session",
    detail: JsonObject,
    operations: readonly BatchOperation[],
  ): Promise<void>;
}

interface ManifestBookOptions {
  readonly store: ManifestStore;
  readonly log: ManifestLog;
  readonly clock: Clock;
}

interface DeclarationPage {
  readonly items: readonly Declaration[];
  /** Where the next page begins; null after the last. */
  readonly next: string | null;
}

const maxOfTenant = 1_000;
const maxLifeMs = 366 * 86_400_000;

/** One tenant's manifests: a task has one scope, and a scope one task. */
interface Shelf {
  readonly byTask: Map<string, Declaration>;
  readonly byScope: Map<string, Declaration>;
  changing: boolean;
}

/** The manifests in force, at most 1,000 a tenant. What changes is in force once it is durable and on record. */
export class ManifestBook {
  readonly #options: ManifestBookOptions;
  readonly #shelves = new Map<string, Shelf>();

  constructor(options: ManifestBookOptions) {
    this.#options = options;
  }

  /** Takes in what the store keeps of a tenant. Rejects with STATE_UNUSABLE where an entry is damaged. */
  async load(tenant: string): Promise<void> {
    const shelf = this.#shelf(tenant);
    for (const [key, text] of await this.#options.store.iterator(manifestRange(tenant)).all()) {
      put(shelf, readDeclaration(key, text));
    }
  }

  find(tenant: string, task: string): Declaration | undefined {
    return this.#shelves.get(tenant)?.byTask.get(task);
  }

  /** The manifest of a principal's session with this label, else of all its sessions. `principal`: the id of its key. */
  covering(tenant: string, principal: string, label: string | undefined): Declaration | undefined {
    const scopes = this.#shelves.get(tenant)?.byScope;
    if (scopes === undefined) return undefined;
    const own = label === undefined ? undefined : scopes.get(scopeOf(principal, label));
    return own ?? scopes.get(scopeOf(principal, undefined));
  }

  /** The manifests of a tenant behind that of the task `after`, in the order of their names. */
  list(tenant: string, limit: number, after = ""): DeclarationPage {
    const tasks = [...(this.#shelves.get(tenant)?.byTask.keys() ?? [])].filter((task) => task > after).sort();
    const page = tasks.slice(0, limit);
    const items = page.map((task) => this.find(tenant, task) as Declaration);
    return { items, next: tasks.length > limit ? (page.at(-1) ?? null) : null };
  }

  /**
   * Puts a manifest in force, in place of the one its task had. `manifest.principal` is the id of a key. Rejects with
   * MANIFEST_CONFLICT where its task has another scope or its scope another task, with INVALID_PARAMS for a time that is
   * over or too far off, and with EVIDENCE_UNAVAILABLE where it cannot be recorded; then what was in force stays so.
   */
  async declare(tenant: string, manifest: TaskManifest, by: string): Promise<Declaration> {
    const now = this.#options.clock();
    checkLife(manifest, now);
    const shelf = this.#shelf(tenant);
    const former = checkScope(shelf, manifest);
    const declaration = declare(manifest, by, new Date(now).toISOString());
    const key = manifestKey(tenant, manifest.task);
    const value = writeDeclaration(declaration);
    const replaced = former === undefined ? {} : { replaced: former.digest };
    const { digest } = declaration;
    const detail = { action: "manifest.declare", principal: by, manifest: { ...manifest }, digest, ...replaced };
    await this.#record(shelf, tenant, detail, { type: "put", key, value });
    put(shelf, declaration);
    return declaration;
  }

  /** Takes a manifest out of force. Rejects with NOT_FOUND, and as `declare` does where it cannot be recorded. */
  async withdraw(tenant: string, task: string, by: string): Promise<Declaration> {
    const declaration = this.find(tenant, task);
    if (declaration === undefined) throw new GatewayError("NOT_FOUND", "no such manifest");
    const shelf = this.#shelf(tenant);
    const detail = { action: "manifest.withdraw", principal: by, task, digest: declaration.digest };
    await this.#record(shelf, tenant, detail, { type: "del", key: manifestKey(tenant, task) });
    const { principal, session } = declaration.manifest;
    shelf.byTask.delete(task);
    shelf.byScope.delete(scopeOf(principal, session));
    return declaration;
  }

  /** One change at a time: what was checked holds until it is durable. */
  async #record(shelf: Shelf, tenant: string, detail: JsonObject, operation: BatchOperation): Promise<void> {
    if (shelf.changing) throw new GatewayError("MANIFEST_CONFLICT", "another change is being recorded; try again");
    shelf.changing = true;
    try {
      await this.#options.log.recordEvent(tenant, "admin", detail, [operation]);
    } finally {
      shelf.changing = false;
    }
  }

  #shelf(tenant: string): Shelf {
    const shelf = this.#shelves.get(tenant) ?? { byTask: new Map(), byScope: new Map(), changing: false };
    this.#shelves.set(tenant, shelf);
    return shelf;
  }
}

/** The manifest that is replaced. */
function checkScope({ byTask, byScope }: Shelf, { task, principal, session }: TaskManifest): Declaration | undefined {
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
  if (former === undefined && byTask.size >= maxOfTenant) {
    throw new GatewayError("MANIFEST_CONFLICT", `expected at most ${maxOfTenant} manifests; withdraw some first`);
  }
  return former;
}

function checkLife({ expires_at: until }: TaskManifest, now: number): void {
  const left = Date.parse(until) - now;
  if (left > 0 && left <= maxLifeMs) return;
  const got = left > 0 ? "a later one" : "one that is past";
  throw new GatewayError("INVALID_PARAMS", `expected \`expires_at\` to be a time within a year, got ${got}`);
}

function put({ byTask, byScope }: Shelf, declaration: Declaration): void {
  const { task, principal, session } = declaration.manifest;
  byTask.set(task, declaration);
  byScope.set(scopeOf(principal, session), declaration);
}

function scopeOf(principal: string, session: string | undefined): string {
  return JSON.stringify([principal, session ?? null]);
}
