import { isJsonObject, type Json } from "../../action/json.ts";
import { EngineError } from "../engine-fault.ts";
import type { EntityJson } from "./library.ts";
import { entityKey } from "./shape.ts";

/** Entities beside one request: each costs time, as Cedar checks them with every request. */
const maxBeside = 256;

/**
 * The entities of `entities.json`, found by what a request can reach: a policy gets from one entity to another only through
 * its parents, attributes and tags.
 */
export class EntityGraph {
  readonly #nodes = new Map<string, { readonly entity: EntityJson; readonly leadsTo: ReadonlySet<string> }>();
  /** Entities that policies name themselves: every request can reach them. */
  readonly #named: ReadonlySet<string>;

  constructor(entities: readonly EntityJson[], named: ReadonlySet<string>) {
    this.#named = named;
    for (const entity of entities) {
      const leadsTo = new Set<string>();
      collectEntities([entity.parents, entity.attrs, entity.tags ?? {}] as unknown as Json, leadsTo);
      this.#nodes.set(keyOf(entity.uid), { entity, leadsTo });
    }
  }

  find(key: string): EntityJson | undefined {
    return this.#nodes.get(key)?.entity;
  }

  /**
   * Returns the request's own entities and what can be reached from them, from `others` and from the policies. An entity of the
   * file that is one of `own` stands there already. Throws EngineError where there are more than 256.
   */
  around(own: readonly EntityJson[], others: Iterable<string>): EntityJson[] {
    const found = [...own];
    const seen = new Set(own.map(({ uid }) => keyOf(uid)));
    const next = [...others, ...this.#named, ...[...seen].flatMap((key) => [...(this.#nodes.get(key)?.leadsTo ?? [])])];
    for (let key = next.pop(); key !== undefined; key = next.pop()) {
      if (seen.has(key)) continue;
      seen.add(key);
      const node = this.#nodes.get(key);
      if (node === undefined) continue;
      found.push(node.entity);
      if (found.length > maxBeside) throw new EngineError("input", `expected at most ${maxBeside} entities in reach`);
      next.push(...node.leadsTo);
    }
    return found;
  }
}

function keyOf(uid: EntityJson["uid"]): string {
  const { type, id } = "__entity" in uid ? uid.__entity : uid;
  return entityKey(type, id);
}

/** Adds every entity that a piece of Cedar's JSON names, however deep, as `type::"id"`. */
export function collectEntities(value: Json, into: Set<string>): void {
  if (Array.isArray(value)) for (const item of value as readonly Json[]) collectEntities(item, into);
  if (!isJsonObject(value)) return;
  const { type, id } = value;
  if (typeof type === "string" && typeof id === "string") into.add(entityKey(type, id));
  for (const member of Object.values(value)) collectEntities(member, into);
}
