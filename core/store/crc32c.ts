/** Tables for eight bytes at a time: entry `256 * k + b` is the remainder of byte `b` followed by `k` zero bytes. */
const tables = makeTables();

function makeTables(): Int32Array {
  const made = new Int32Array(2_048);
  for (let byte = 0; byte < 256; byte++) {
    let rest = byte;
    for (let bit = 0; bit < 8; bit++) rest = (rest >>> 1) ^ (rest & 1 ? 0x82f63b78 : 0);
    made[byte] = rest;
  }
  for (let at = 256; at < made.length; at++) {
    const before = made[at - 256] as number;
    made[at] = (before >>> 8) ^ (made[before & 0xff] as number);
  }
  return made;
}

/**
 * Returns the CRC-32C (RFC 3720) of `bytes`, or of what came before with `bytes` added: `crc32c(b, crc32c(a))` is that of
 * both. Node's own `zlib.crc32` is of another polynomial.
 */
export function crc32c(bytes: Uint8Array, before = 0): number {
  const { length } = bytes;
  const whole = length - (length % 8);
  let crc = ~before;
  let at = 0;
  for (; at < whole; at += 8) {
    crc ^= byte(bytes, at) | (byte(bytes, at + 1) << 8) | (byte(bytes, at + 2) << 16) | (byte(bytes, at + 3) << 24);
    crc =
      entry(1_792 + (crc & 0xff)) ^
      entry(1_536 + ((crc >>> 8) & 0xff)) ^
      entry(1_280 + ((crc >>> 16) & 0xff)) ^
      entry(1_024 + (crc >>> 24)) ^
      entry(768 + byte(bytes, at + 4)) ^
      entry(512 + byte(bytes, at + 5)) ^
      entry(256 + byte(bytes, at + 6)) ^
      entry(byte(bytes, at + 7));
  }
  for (; at < length; at++) crc = (crc >>> 8) ^ entry((crc ^ byte(bytes, at)) & 0xff);
  return ~crc >>> 0;
}

// Two functions, so that each reads arrays of one kind only: those are compiled to one load.
function byte(bytes: Uint8Array, at: number): number {
  return bytes[at] as number;
}

function entry(at: number): number {
  return tables[at] as number;
}

const maskDelta = 0xa282ead8;

/** Returns the checksum as LevelDB stores it: rotated and moved, so that checksums can be under checksums. */
export function maskCrc(crc: number): number {
  return (((crc >>> 15) | (crc << 17)) + maskDelta) >>> 0;
}
