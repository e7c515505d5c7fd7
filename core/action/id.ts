/** A UUIDv7 (RFC 9562): 48 bits of milliseconds, then 74 of the 80 random bits given. */
export function uuidV7(timeMs: number, random: Uint8Array): string {
  if (random.length < 10) throw new TypeError(`uuidV7: expected 10 random bytes, got ${random.length}`);
  const time = Math.floor(timeMs).toString(16).padStart(12, "0");
  const bytes = Buffer.from(random.subarray(0, 10));
  bytes[0] = ((bytes[0] as number) & 0x0f) | 0x70; // the version
  bytes[2] = ((bytes[2] as number) & 0x3f) | 0x80; // the variant
  const rest = bytes.toString("hex");
  return `${time.slice(0, 8)}-${time.slice(8)}-${rest.slice(0, 4)}-${rest.slice(4, 8)}-${rest.slice(8)}`;
}

/** Returns a source of UUIDv7. */
export function idSource(clock: Clock, random: Random): () => string {
  const pool = poolRandom(random);
  return () => uuidV7(clock(), pool(10));
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
