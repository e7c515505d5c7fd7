import type { NoticeType } from "../kernel/webhook-config.ts";

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
