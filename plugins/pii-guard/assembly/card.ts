import { digitAt, digitsIn, groupEnd, groupSize, groupStart, hasShape, numberAt, standsAlone } from "./digit-group";
import { found, isWanted } from "./found";
import { Kind } from "./kind";

/** A payment card number in the groups that were read: where it ends, or 0. */
export function cardAt(): i32 {
  if (!isWanted(Kind.card)) return 0;
  const groups = cardGroups();
  if (groups === 0 || !isIssued(digitsIn(groups)) || !passesLuhn(digitsIn(groups))) return 0;
  return found(Kind.card, groupStart(0), groupEnd(groups - 1));
}

function cardGroups(): i32 {
  const size = groupSize(0);
  if (size >= 14) return size <= 19 && standsAlone(1) ? 1 : 0;
  if (hasShape(0x0404040403, 5)) return 5;
  if (hasShape(0x04040404, 4)) return 4;
  if (hasShape(0x040605, 3) || hasShape(0x040604, 3)) return 3;
  return hasShape(0x060d, 2) ? 2 : 0;
}

/** Prefixes and lengths of the networks. */
function isIssued(length: i32): bool {
  const two = <i32>numberAt(0, 2);
  const four = <i32>numberAt(0, 4);
  if (length === 14) return two === 36 || two === 38 || two === 39 || (four >= 3000 && four <= 3059);
  if (length === 15) return two === 34 || two === 37;
  if (two === 62) return length >= 16;
  if (length === 19) return digitAt(0) === 4;
  if (length !== 16) return false;
  if (digitAt(0) === 4 || (two >= 51 && two <= 55) || (four >= 2221 && four <= 2720)) return true;
  return four === 6011 || two === 65 || (four >= 6440 && four <= 6499) || (four >= 3528 && four <= 3589);
}

/** The check digit of ISO/IEC 7812. */
function passesLuhn(length: i32): bool {
  let sum = 0;
  for (let index = 0; index < length; index++) {
    const doubled = ((length - index) & 1) === 0 ? digitAt(index) * 2 : digitAt(index);
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}
