import type { JWTPayload } from "jose";
import { type Role, roles } from "../action/role.ts";

/** The meaning of an issuer's claims, as the configuration has it. */
export interface ClaimRule {
  /** That of every subject; null where `tenantClaim` says it. */
  readonly tenant: string | null;
  readonly tenantClaim: string | null;
  /** By value of the claim. */
  readonly tenants: Readonly<Record<string, string>>;
  readonly roleClaim: string | null;
  /** By value of the claim. */
  readonly roles: Readonly<Record<string, Role>>;
}

/** Bounded, and safe to show. */
const subjectShape = /^[\x21-\x5f\x61-\x7e]{1,255}$/;

/** Returns the subject of a token; undefined for one that is too long to keep, or not safe to show. */
export function readSubject({ sub }: JWTPayload): string | undefined {
  return typeof sub === "string" && subjectShape.test(sub) ? sub : undefined;
}

/** Returns the tenant of a token's subject; undefined where its claim has no value that is listed. */
export function mappedTenant(claims: JWTPayload, { tenant, tenantClaim, tenants }: ClaimRule): string | undefined {
  if (tenantClaim === null) return tenant ?? undefined;
  const value = Object.hasOwn(claims, tenantClaim) ? claims[tenantClaim] : undefined;
  return typeof value === "string" && Object.hasOwn(tenants, value) ? tenants[value] : undefined;
}

/** Returns the strongest role that a claim names; undefined where it names none. */
export function mappedRole(claims: JWTPayload, { roleClaim, roles: roleByValue }: ClaimRule): Role | undefined {
  if (roleClaim === null || !Object.hasOwn(claims, roleClaim)) return undefined;
  const value = claims[roleClaim];
  const named = (Array.isArray(value) ? value : [value]).flatMap((each) =>
    typeof each === "string" && Object.hasOwn(roleByValue, each) ? [roleByValue[each]] : [],
  );
  return roles.find((each) => named.includes(each));
}
