import type { Random } from "./id.ts";

/** The time between attempts doubles from the first to the maximum. */
export interface RetryDelays {
  readonly firstMs: number;
  readonly maxMs: number;
}

/**
 * Returns the delay after `failures` attempts, in milliseconds. Half of it is random, so that clients that failed together
 * do not retry together. The peer may ask for a longer one, up to the maximum.
 */
export function retryDelay(failures: number, askedMs: number, { firstMs, maxMs }: RetryDelays, random: Random): number {
  const ceiling = Math.min(maxMs, firstMs * 2 ** (failures - 1));
  const chance = ((random(1)[0] as number) + 1) / 256;
  return Math.round(Math.max((ceiling / 2) * (1 + chance), Math.min(askedMs, maxMs)));
}

/** The time a `retry-after` header asks for, in milliseconds: seconds, or a date. 0 for anything else. */
export function readRetryAfter(text: string, nowMs: number): number {
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const date = text.length <= 64 ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? 0 : Math.max(0, date - nowMs);
}
