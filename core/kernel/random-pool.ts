import type { Random } from "./port.ts";

const poolBytes = 4_096;

/**
 * The same source, asked for 4 KiB at a time: a record needs some 40 bytes, and each request of its own costs more than
 * hashing the record. No byte is handed out twice.
 */
export function poolRandom(random: Random): Random {
  let pool: Uint8Array = new Uint8Array(0);
  let used = 0;
  return (count) => {
    if (count > poolBytes) return random(count);
    if (used + count > pool.length) {
      pool = random(poolBytes);
      used = 0;
    }
    used += count;
    return pool.subarray(used - count, used);
  };
}
