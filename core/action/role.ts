/** The roles of keys inside their own tenant. No role has permissions in another tenant. */
export const roles = ["admin", "operator", "viewer"] as const;
export type Role = (typeof roles)[number];

export type Permission =
  | "evidence.read"
  | "evidence.disclose"
  | "evidence.verify"
  | "evidence.rotate"
  | "approval.read"
  | "approval.review"
  | "approval.break_glass"
  | "upstream.read"
  | "provider.read"
  | "policy.read"
  | "policy.test"
  | "usage.read"
  | "metrics.read"
  | "webhook.read"
  | "webhook.redeliver"
  | "session.read"
  | "session.kill"
  | "gateway.kill"
  | "ticket.read"
  | "ticket.issue"
  | "backup.read"
  | "backup.create"
  | "manifest.read"
  | "manifest.write";

const granted: Readonly<Record<Role, readonly Permission[]>> = {
  admin: [
    "evidence.read",
    "evidence.disclose",
    "evidence.verify",
    "evidence.rotate",
    "approval.read",
    "approval.review",
    "approval.break_glass",
    "upstream.read",
    "provider.read",
    "policy.read",
    "policy.test",
    "usage.read",
    "metrics.read",
    "webhook.read",
    "webhook.redeliver",
    "session.read",
    "session.kill",
    "gateway.kill",
    "ticket.read",
    "ticket.issue",
    "backup.read",
    "backup.create",
    "manifest.read",
    "manifest.write",
  ],
  operator: [
    "evidence.read",
    "evidence.disclose",
    "evidence.verify",
    "approval.read",
    "approval.review",
    "upstream.read",
    "provider.read",
    "policy.read",
    "policy.test",
    "usage.read",
    "metrics.read",
    "webhook.read",
    "session.read",
    "session.kill",
    "ticket.read",
    "ticket.issue",
    "backup.read",
    "manifest.read",
    "manifest.write",
  ],
  viewer: [
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
  ],
};

/** Returns whether `role` has `permission`: `can("viewer", "evidence.read")`. */
export function can(role: Role, permission: Permission): boolean {
  return granted[role].includes(permission);
}
