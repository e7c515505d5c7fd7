import {
  base64End,
  byteAt,
  decodeBase64,
  isAlphanumeric,
  isWordByte,
  Span,
  Unescaped,
} from "agent-governance-sdk/assembly";
import { detect } from "./detector";
import { decodePercent } from "./percent";

const shortestCredential: i32 = 20;
/** The prefix in base64. */
const shortestRun: i32 = 27;

/** Up to this length, the decoded text of a run may begin at a mark inside it. */
const longestPath: i32 = 8_192;
const mostTries: i32 = 8;

/** Returns true for a byte of base64 or base64url. */
const inRun = new StaticArray<bool>(256);

for (let byte = 0; byte < 256; byte++) inRun[byte] = isWordByte(<u8>byte) || byte === 0x2b || byte === 0x2f;

/**
 * The kinds of credentials in a text, of those asked for: as it stands, in what its JSON escapes say where it may be JSON
 * itself, in what it says as a part of a URL, and in base64 in any of these.
 */
export function search(text: Span, mayEscape: bool, wanted: i32): i32 {
  let kinds = searchPlain(text, wanted) | searchPercent(text, wanted);
  if (!mayEscape) return kinds;
  const inner = new Unescaped(text.from, text.to);
  if (inner.isOther) kinds |= searchPlain(inner.text, wanted);
  return kinds;
}

function searchPercent(text: Span, wanted: i32): i32 {
  const decoded = decodePercent(text.from, text.to);
  return decoded === null ? 0 : searchPlain(decoded, wanted);
}

function searchPlain(text: Span, wanted: i32): i32 {
  return detect(text.from, text.to, wanted) | searchBase64(text.from, text.to, wanted);
}

/** Linear in the text: a run that is long enough holds one of the places looked at. */
function searchBase64(from: i32, to: i32, wanted: i32): i32 {
  let kinds = 0;
  let behind = from;
  for (let at = from + shortestRun - 1; at < to; at += shortestRun) {
    if (!isInRun(at)) continue;
    let start = at;
    while (start > behind && isInRun(start - 1)) start--;
    // A word of a text ends before this, and is not read again.
    if (!isInRun(start + shortestRun - 1)) continue;
    behind = base64End(start, to);
    if (behind - start >= shortestRun) kinds |= searchRun(start, behind, wanted);
    at = max(at, behind - 1);
  }
  return kinds;
}

/** The marks of base64 stand between parts of a path and of names, too: what follows one may be where it begins. */
function searchRun(from: i32, to: i32, wanted: i32): i32 {
  let start = from;
  for (let tries = 0; tries < mostTries && to - start >= shortestRun; tries++) {
    const text = decodeBase64(start, to);
    if (text.length >= shortestCredential) return detect(text.from, text.to, wanted);
    if (to - from > longestPath) return 0;
    while (start < to && isAlphanumeric(byteAt(start))) start++;
    start++;
  }
  return 0;
}

function isInRun(at: i32): bool {
  return unchecked(inRun[byteAt(at)]);
}
