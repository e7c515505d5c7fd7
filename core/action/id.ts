const hex: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** A UUIDv7 (RFC 9562): 48 bits of milliseconds, then 74 of the 80 random bits given. */
export function uuidV7(timeMs: number, random: Uint8Array): string {
  if (random.length < 10) throw new TypeError(`uuidV7: expected 10 random bytes, got ${random.length}`);
  const time = Math.floor(timeMs).toString(16).padStart(12, "0");
  const at = (index: number): string => hex[random[index] as number] as string;
  const version = hex[((random[0] as number) & 0x0f) | 0x70] as string;
  const variant = hex[((random[2] as number) & 0x3f) | 0x80] as string;
  const tail = at(4) + at(5) + at(6) + at(7) + at(8) + at(9);
  return `${time.slice(0, 8)}-${time.slice(8)}-${version}${at(1)}-${variant}${at(3)}-${tail}`;
}

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

/** Milliseconds since the epoch. Tests bring their own. */
export type Clock = () => number;

/** `count` unpredictable bytes. */
export type Random = (count: number) => Uint8Array;
