import { createHash } from "node:crypto";
import { principalId } from "../../../core/action/principal.ts";
import type { Role } from "../../../core/action/role.ts";
import { keyEntry } from "../target.ts";

/** Somebody with a key. */
export interface Member {
  readonly id: string;
  readonly tenant: string;
  readonly role: Role;
  readonly key: string;
}

function member(id: string, tenant: string, role: Role): Member {
  return { id, tenant, role, key: `bench-${tenant}-${id}-not-a-secret` };
}

function members(count: number, id: string, tenant: string, role: Role): readonly Member[] {
  return Array.from({ length: count }, (_, n) => member(`${id}-${n}`, tenant, role));
}

/** Has one key of a viewer, and does its worst with it. */
export const attacker: Member = member("attacker", "acme", "viewer");
/** Watches over the attacker's tenant. */
export const operator: Member = member("operator", "acme", "operator");
/** Stopped and released again by the operator, so that nobody else's work is stopped. */
export const stopped: readonly Member[] = members(10, "stopped", "acme", "viewer");
/** Another tenant's agents: several, so that none of them comes near a rate of its own. */
export const victims: readonly Member[] = members(10, "victim", "globex", "operator");
/** Of a third tenant: they warm the gateway up, which takes more calls than one key may make. */
export const warmers: readonly Member[] = members(20, "warmer", "initech", "operator");

/** `keys` of a configuration. */
export function crewKeys(): string {
  const all = [attacker, operator, ...stopped, ...victims, ...warmers];
  const entries = all.map(({ id, tenant, role, key }) => `  - ${keyEntry(id, tenant, role, key)}\n`);
  return `keys:\n${entries.join("")}`;
}

export function principalOf({ tenant, key }: Member): string {
  return principalId(tenant, `sha256:${createHash("sha256").update(key).digest("hex")}`);
}
