/** The roles of keys inside their own tenant. No role has permissions in another tenant. */
export const roles = ["admin", "operator", "viewer"] as const;
export type Role = (typeof roles)[number];

const viewer = [
  "evidence.read",
  "approval.read",
  "upstream.read",
  "provider.read",
  "policy.read",
  "usage.read",
  "metrics.read",
  "session.read",
  "ticket.read",
  "manifest.read",
] as const;
const operator = [
  ...viewer,
  "evidence.disclose",
  "evidence.verify",
  "approval.review",
  "policy.test",
  "webhook.read",
  "session.kill",
  "ticket.issue",
  "backup.read",
  "manifest.write",
] as const;
const admin = [
  ...operator,
  "evidence.rotate",
  "evidence.prune",
  "evidence.erase",
  "approval.break_glass",
  "webhook.redeliver",
  "gateway.kill",
  "backup.create",
] as const;

export type Permission = (typeof admin)[number];

const granted: Readonly<Record<Role, readonly Permission[]>> = { admin, operator, viewer };

/** Returns whether `role` has `permission`: `can("viewer", "evidence.read")`. */
export function can(role: Role, permission: Permission): boolean {
  return granted[role].includes(permission);
}
