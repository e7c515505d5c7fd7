import { Buffer } from "node:buffer";

/** What webhooks can be told of. */
export const noticeTypes = ["approval.pending", "approval.approved", "approval.denied", "approval.expired"] as const;
export type NoticeType = (typeof noticeTypes)[number];

/** Somebody outside who is told what happens to a tenant's approvals. */
export interface WebhookConfig {
  readonly name: string;
  readonly tenant: string;
  readonly url: string;
  /** `whsec_<base64>`; more than one while they change: each delivery carries a signature of each. */
  readonly secrets: readonly string[];
  readonly events: readonly NoticeType[];
  /** Connecting and answering together. */
  readonly timeoutMs: number;
  readonly maxAttempts: number;
}

const leastBytes = 24;
const mostBytes = 64;

/** The key in a secret as Standard Webhooks writes it: `whsec_` and the base64 of 24 to 64 bytes. Undefined for others. */
export function readWebhookSecret(text: string): Buffer | undefined {
  const [, base64 = ""] = /^whsec_([A-Za-z0-9+/]{32,88}={0,2})$/.exec(text) ?? [];
  const key = Buffer.from(base64, "base64");
  // What decodes but is not what encoding gives would be another key to another decoder.
  if (key.toString("base64") !== base64) return undefined;
  return key.length >= leastBytes && key.length <= mostBytes ? key : undefined;
}
