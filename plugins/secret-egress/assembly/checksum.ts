import { byteAt } from "agent-governance-sdk/assembly";

const base: u32 = 62;
const digits: i32 = 6;
const polynomial: u32 = 0xedb88320;

/** Returns true if the last six bytes of a span are the CRC-32 of those before, in base62 with zeros in front. */
export function endsInChecksum(from: i32, to: i32): bool {
  let rest = crc32(from, to - digits);
  for (let at = to - 1; at >= to - digits; at--) {
    if (byteAt(at) !== digitOf(rest % base)) return false;
    rest /= base;
  }
  return true;
}

function crc32(from: i32, to: i32): u32 {
  let sum: u32 = ~0;
  for (let at = from; at < to; at++) {
    sum ^= byteAt(at);
    for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (polynomial & (0 - (sum & 1)));
  }
  return ~sum;
}

/** `0` to `9`, `A` to `Z`, `a` to `z`. */
function digitOf(value: u32): u8 {
  if (value < 10) return <u8>(0x30 + value);
  return <u8>(value < 36 ? 0x37 + value : 0x3d + value);
}
