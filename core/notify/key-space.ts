import { type KeyRange, rangeOf, tenantPrefix } from "../kernel/tenant-key.ts";

/** Key without a tenant: every outbox there ever was, as a list of tenant and webhook. */
export const outboxesKey = "webhooks";

const seqDigits = 16;

/** A parcel on its way, by its turn. */
export function outboxKey(tenant: string, webhook: string, seq: number): string {
  return `${outboxPrefix(tenant, webhook)}${sequence(seq)}`;
}

export function outboxRange(tenant: string, webhook: string): KeyRange {
  return rangeOf(outboxPrefix(tenant, webhook));
}

/** A dead letter, by its turn. */
export function deadLetterKey(tenant: string, seq: number): string {
  return `${deadLetterPrefix(tenant)}${sequence(seq)}`;
}

export function deadLetterRange(tenant: string): KeyRange {
  return rangeOf(deadLetterPrefix(tenant));
}

/** The number that a key of this file ends with. */
export function sequenceOf(key: string): number {
  return Number(key.slice(-seqDigits));
}

function outboxPrefix(tenant: string, webhook: string): string {
  return `${tenantPrefix(tenant)}webhook-outbox/${encodeURIComponent(webhook)}/`;
}

function deadLetterPrefix(tenant: string): string {
  return `${tenantPrefix(tenant)}webhook-dead-letter/`;
}

function sequence(number: number): string {
  return String(number).padStart(seqDigits, "0");
}
