/** What a key may do inside its own tenant. No role reaches across tenants. */
export const roles = ["admin", "operator", "viewer"] as const;
export type Role = (typeof roles)[number];

export type Permission = "action.attempt" | "evidence.read" | "evidence.verify" | "upstream.read" | "policy.read";

const granted: Readonly<Record<Role, readonly Permission[]>> = {
  admin: ["action.attempt", "evidence.read", "evidence.verify", "upstream.read", "policy.read"],
  operator: ["action.attempt", "evidence.read", "evidence.verify", "upstream.read", "policy.read"],
  viewer: ["action.attempt", "evidence.read", "evidence.verify", "upstream.read", "policy.read"],
};

/** Whether `role` carries `permission`: `can("viewer", "evidence.read")`. */
export function can(role: Role, permission: Permission): boolean {
  return granted[role].includes(permission);
}
