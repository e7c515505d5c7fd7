const idBytes = 10;
/** The hex digits of each byte: for ten bytes, cheaper than a copy of them and a call into the engine. */
const hexOf: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** A UUIDv7 (RFC 9562): 48 bits of milliseconds, then 74 of the 80 random bits given. */
export function uuidV7(timeMs: number, random: Uint8Array): string {
  if (random.length < idBytes) throw new TypeError(`uuidV7: expected ${idBytes} random bytes, got ${random.length}`);
  const time = Math.floor(timeMs).toString(16).padStart(12, "0");
  const version = hexOf[((random[0] as number) & 0x0f) | 0x70] as string;
  const variant = hexOf[((random[2] as number) & 0x3f) | 0x80] as string;
  let node = "";
  for (let at = 4; at < idBytes; at++) node += hexOf[random[at] as number];
  const rest = `${version}${hexOf[random[1] as number]}-${variant}${hexOf[random[3] as number]}-${node}`;
  return `${time.slice(0, 8)}-${time.slice(8)}-${rest}`;
}

/** Returns a source of UUIDv7. */
export function idSource(clock: Clock, random: Random): () => string {
  const pool = poolRandom(random);
  return () => uuidV7(clock(), pool(idBytes));
}

/** The last second that had a text: most times fall into it. */
const lastSecond = { second: Number.NaN, text: "" };

/** The RFC 3339 text of a time: UTC, with milliseconds. Throws RangeError for one that has none. */
export function timeText(timeMs: number): string {
  const ms = Math.trunc(timeMs);
  const second = Math.floor(ms / 1_000);
  if (second !== lastSecond.second) {
    lastSecond.text = new Date(ms).toISOString().slice(0, -4);
    lastSecond.second = second;
  }
  return `${lastSecond.text}${String(ms - second * 1_000).padStart(3, "0")}Z`;
}

const poolBytes = 4_096;

/**
 * The same source, asked for 4 KiB at a time: a record needs some 100 bytes, and each request of its own costs more than
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

/** Milliseconds since the epoch, where nothing else is said. Tests bring their own. */
export type Clock = () => number;

/** `count` unpredictable bytes. */
export type Random = (count: number) => Uint8Array;
