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
import { FoundList, forget } from "./found";
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

/** In a text whose places have to be found in the one it was made from; and in one piece of base64. */
const below = new FoundList();
const piece = new FoundList();

/**
 * Finds the credentials in a text: as it stands, in what its JSON escapes say where it may be JSON itself, in what it says
 * as a part of a URL, and in base64 in any of these. Their kinds are noted; their places are bytes of the text, in their
 * order, and apart.
 */
export function search(text: Span, mayEscape: bool, list: FoundList): void {
  forget();
  list.clear();
  searchPlain(text.from, text.to, text.from, list);
  const decoded = decodePercent(text.from, text.to);
  if (decoded !== null) {
    searchBelow(decoded.text);
    for (let index = 0; index < below.count; index++) {
      const start = decoded.sourceOf(below.start(index)) - text.from;
      list.add(below.kind(index), start, decoded.sourceOf(below.end(index)) - text.from);
    }
  }
  if (mayEscape) searchEscaped(text, list);
  list.merge();
}

function searchEscaped(text: Span, list: FoundList): void {
  const inner = new Unescaped(text.from, text.to);
  if (!inner.isOther) return;
  searchBelow(inner.text);
  for (let index = 0; index < below.count; index++) {
    const start = inner.sourceOf(below.start(index)) - text.from;
    list.add(below.kind(index), start, inner.sourceOf(below.end(index)) - text.from);
  }
}

/** Finds into `below`, with addresses for places. */
function searchBelow(text: Span): void {
  below.clear();
  searchPlain(text.from, text.to, 0, below);
  below.merge();
}

function searchPlain(from: i32, to: i32, base: i32, list: FoundList): void {
  detect(from, to, base, list);
  searchBase64(from, to, base, list);
}

/** Linear in the text: a run that is long enough holds one of the places looked at. */
function searchBase64(from: i32, to: i32, base: i32, list: FoundList): void {
  let behind = from;
  for (let at = from + shortestRun - 1; at < to; at += shortestRun) {
    if (!isInRun(at)) continue;
    let start = at;
    while (start > behind && isInRun(start - 1)) start--;
    // A word of a text ends before this, and is not read again.
    if (!isInRun(start + shortestRun - 1)) continue;
    behind = base64End(start, to);
    if (behind - start >= shortestRun) searchRun(start, behind, base, list);
    at = max(at, behind - 1);
  }
}

/** The marks of base64 stand between parts of a path and of names, too: what follows one may be where it begins. */
function searchRun(from: i32, to: i32, base: i32, list: FoundList): void {
  let start = from;
  for (let tries = 0; tries < mostTries && to - start >= shortestRun; tries++) {
    const text = decodeBase64(start, to);
    if (text.length >= shortestCredential) {
      piece.clear();
      detect(text.from, text.to, 0, piece);
      for (let index = 0; index < piece.count; index++) list.add(piece.kind(index), start - base, to - base);
      return;
    }
    if (to - from > longestPath) return;
    while (start < to && isAlphanumeric(byteAt(start))) start++;
    start++;
  }
}

function isInRun(at: i32): bool {
  return unchecked(inRun[byteAt(at)]);
}
