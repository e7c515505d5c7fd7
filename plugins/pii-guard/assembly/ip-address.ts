import { digitsIn, groupCount, groupEnd, groupSize, groupStart, markAfter, numberAt } from "./digit-group";
import { found, isWanted } from "./found";
import { Kind } from "./kind";
import { byteAt, isDigit, isWordAt } from "./span";

/** An IPv4 address of the public network in the groups that were read: where it ends, or 0. */
export function ipv4At(): i32 {
  if (!isWanted(Kind.ip) || groupCount() < 4 || isWordAt(groupStart(0) - 1)) return 0;
  for (let index = 0; index < 4; index++) {
    if (groupSize(index) > 3 || octetOf(index) > 255) return 0;
    if (index < 3 && markAfter(index) !== 0x2e) return 0;
  }
  const ends = markAfter(3) !== 0x2e && !isWordAt(groupEnd(3)) && byteAt(groupStart(0) - 1) !== 0x2e;
  return ends && isPublic(octetOf(0), octetOf(1)) ? found(Kind.ip, groupStart(0), groupEnd(3)) : 0;
}

function octetOf(index: i32): i32 {
  return <i32>numberAt(digitsIn(index), groupSize(index));
}

/** Not this host, not a private network, not multicast. */
function isPublic(first: i32, second: i32): bool {
  if (first === 0 || first === 10 || first === 127 || first >= 224) return false;
  if (first === 192 && second === 168) return false;
  if (first === 169 && second === 254) return false;
  return !(first === 172 && second >= 16 && second <= 31);
}

/** An IPv6 address of the global network (2000::/3) that begins here: where it ends, or 0. */
export function ipv6At(from: i32): i32 {
  if (!isWanted(Kind.ip) || byteAt(from - 1) === 0x3a) return 0;
  const first = byteAt(from);
  if (first !== 0x32 && first !== 0x33) return 0;
  let groups = 0;
  let gap = false;
  let at = from;
  while (groups < 8) {
    const end = hexEnd(at);
    if (end === at) break;
    groups++;
    at = end;
    if (groups === 8 || byteAt(at) !== 0x3a) break;
    if (byteAt(at + 1) === 0x3a && !gap) {
      gap = true;
      at += 2;
    } else if (hexEnd(at + 1) > at + 1) at++;
    else break;
  }
  if (isWordAt(at) || byteAt(at) === 0x3a || !(groups === 8 || (gap && groups >= 2))) return 0;
  return found(Kind.ip, from, at);
}

function hexEnd(from: i32): i32 {
  let at = from;
  while (at - from < 4 && isHex(byteAt(at))) at++;
  return at;
}

function isHex(byte: u8): bool {
  const lower = byte | 0x20;
  return isDigit(byte) || (lower >= 0x61 && lower <= 0x66);
}
