import type { NoticeType } from "../config/peer-config.ts";
import { type KeyRange, rangeOf, tenantPrefix } from "../store/key-range.ts";

/** One notice on its way to one webhook. */
export interface Parcel {
  /** `webhook-id`: the same in every attempt, so that the receiver can drop what it has. */
  readonly id: string;
  readonly type: NoticeType;
  /** When it happened, RFC 3339. */
  readonly time: string;
  /** The request's body: the same bytes in every attempt. */
  readonly body: string;
  /** Attempts that failed. */
  readonly attempts: number;
  /** Status of the last answer; null where there was none. */
  readonly status: number | null;
  /** Not to be tried before, in milliseconds since the epoch. */
  readonly notBefore: number;
}

/** Why nobody tries any more: the receiver refused it, attempts ran out, or there was no room or no webhook for it. */
export type DeathReason = "refused" | "exhausted" | "overflow" | "removed";

/** A parcel that was given up. */
export interface DeadLetter extends Parcel {
  readonly webhook: string;
  readonly reason: DeathReason;
  /** When it was given up, RFC 3339. */
  readonly givenUpAt: string;
}

/** What the store holds of it. What we wrote is read back as it was written: the store is ours. */
export function writeParcel(parcel: Parcel): string {
  return JSON.stringify(parcel);
}

export function readParcel(text: string): Parcel {
  return JSON.parse(text) as Parcel;
}

export function readDeadLetter(text: string): DeadLetter {
  return JSON.parse(text) as DeadLetter;
}

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
