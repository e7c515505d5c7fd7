import { base64End, decodeBase64, Span } from "agent-governance-sdk/assembly";
import { cardAt } from "./card";
import { mayBegin, readGroups } from "./digit-group";
import { emailAt } from "./email";
import { changeSink, found } from "./found";
import { ibanAt } from "./iban";
import { ipv4At, ipv6At } from "./ip-address";
import { foreignerIdAt, nationalIdAt } from "./national-id";
import { bracketPhoneAt, phoneAt, plusPhoneAt, saidPhoneAt } from "./phone";
import { socialSecurityAt } from "./social-security";
import { Bits, bitsAt, byteAt, floorNow, isWordAt, openSpan, raiseFloor, spanEnd, spanStart } from "./span";
import { travelDocumentAt } from "./travel-document";

const shortestEncodedWord: i32 = 8;
const shortestRun: i32 = 16;

/** The end of the run of base64 that was decoded last. */
let decodedTo: i32 = 0;
let insideRun: bool = false;
let foundInside: i32 = -1;

/** Finds and reports personal data in the open span. Reads each byte a bounded number of times. */
export function scan(): void {
  decodedTo = 0;
  scanWords();
}

function scanWords(): void {
  for (let at = 0; at < spanEnd(); ) {
    const bits = bitsAt(at);
    if ((bits & (Bits.digit | Bits.letter)) !== 0) at = wordAt(at);
    else if ((bits & Bits.trigger) !== 0) at = markAt(at);
    else at++;
  }
}

/** Handles what begins with a mark. Returns where to continue. */
function markAt(at: i32): i32 {
  switch (byteAt(at)) {
    case 0x40: // @
      return emailAt(at, 1);
    case 0x2b: // +
      return plusPhoneAt(at);
    case 0x28: // (
      return bracketPhoneAt(at);
    default:
      return byteAt(at + 1) === 0x34 && byteAt(at + 2) === 0x30 ? emailAt(at, 3) : at + 1;
  }
}

/** Handles what begins with a word of letters and digits. Returns where to continue. */
function wordAt(at: i32): i32 {
  let end = at;
  let bits: u8 = 0;
  do bits |= bitsAt(end++);
  while (isWordAt(end));
  const next = end - at >= shortestEncodedWord ? encodedAt(at) : 0;
  if (next > 0 || (bits & Bits.digit) === 0) return max(next, end);
  return max(end, (bitsAt(at) & Bits.digit) === 0 ? codeAt(at, end) : numberAt(at));
}

function codeAt(at: i32, end: i32): i32 {
  const next = ibanAt(at);
  if (next > 0) return next;
  const id = foreignerIdAt(at, end);
  return id > 0 ? id : travelDocumentAt(at);
}

function numberAt(at: i32): i32 {
  let next = travelDocumentAt(at);
  if (next > 0) return next;
  readGroups(at);
  if (!mayBegin()) {
    next = ipv6At(at);
    return next > 0 ? next : saidPhoneAt();
  }
  next = cardAt();
  if (next === 0) next = socialSecurityAt();
  if (next === 0) next = nationalIdAt();
  if (next === 0) next = ipv4At();
  if (next === 0) next = ipv6At(at);
  return next > 0 ? next : phoneAt();
}

/** A run of base64 whose text holds personal data is found whole: where it ends, or 0. */
function encodedAt(at: i32): i32 {
  if (insideRun || at < decodedTo) return 0;
  const start = <i32>spanStart();
  const to = base64End(start + at, start + spanEnd());
  decodedTo = to - start;
  if (decodedTo - at < shortestRun) return 0;
  const text = decodeBase64(start + at, to);
  const kind = text.length > 0 ? kindInside(text) : -1;
  return kind < 0 ? 0 : found(kind, at, decodedTo);
}

/** The first kind found in other bytes, or -1; the span that is open stays so. */
function kindInside(text: Span): i32 {
  const outerStart = spanStart();
  const outerEnd = spanEnd();
  const floor = floorNow();
  const sink = changeSink((kind: i32, _from: i32, _to: i32): void => {
    if (foundInside < 0) foundInside = kind;
  });
  foundInside = -1;
  insideRun = true;
  openSpan(<usize>text.from, text.length);
  scanWords();
  insideRun = false;
  changeSink(sink);
  openSpan(outerStart, outerEnd);
  raiseFloor(floor);
  return foundInside;
}
