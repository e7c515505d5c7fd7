import { Context, saysBefore } from "./context";
import { groupEnd, groupStart, hasShape, markAfter, numberAt } from "./digit-group";
import { found, isWanted } from "./found";
import { Kind } from "./kind";

/** A US social security number in the groups that were read: where it ends, or 0. */
export function socialSecurityAt(): i32 {
  if (!isWanted(Kind.ssn)) return 0;
  const groups = hasShape(0x030204, 3) && markAfter(0) !== 0x2f ? 3 : 1;
  if (groups === 1 && !(hasShape(0x09, 1) && saysBefore(groupStart(0), Context.ssn))) return 0;
  return isIssued() ? found(Kind.ssn, groupStart(0), groupEnd(groups - 1)) : 0;
}

/** No area 000, 666 or from 900, no group 00, no serial 0000 was ever issued. */
function isIssued(): bool {
  const area = <i32>numberAt(0, 3);
  return area !== 0 && area !== 666 && area < 900 && numberAt(3, 2) !== 0 && numberAt(5, 4) !== 0;
}
