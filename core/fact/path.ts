import type { PathFact } from "../action/action-fact.ts";
import { hasOddSign, isOddSegment } from "./path-sign.ts";

/** Characters of a text that is read; systems refuse longer paths, or cut them. */
const maxPathText = 4_096;

/**
 * Reads a path as POSIX does. `root` is an absolute folder that relative paths start at. Never throws. Sees the text alone: a
 * symbolic link leads where it leads, and a `..` behind one does too.
 */
export function readPath(text: string, root?: string): PathFact {
  const odd: PathFact = { plain: text, inside: false, odd: true };
  if (text === "" || text.length > maxPathText) return odd;
  const base = root === undefined ? undefined : readRoot(root);
  if (root !== undefined && base === undefined) return odd;
  const path = pathOf(text);
  if (path === undefined || (base === undefined && !path.startsWith("/"))) return odd;
  const segments = climb(path.startsWith("/") ? [] : (base ?? []), path);
  if (segments === undefined || isMagic(segments)) return odd;
  const plain = `/${segments.join("/")}`;
  if (base === undefined) return { plain, inside: false, odd: false };
  const inside = isWithin(segments, base);
  // It leaves the root and comes back, or another letter case would lead into it.
  if (inside ? leaves(path, base) : isWithin(segments.map(caseless), base.map(caseless))) return odd;
  return { plain, inside, odd: false };
}

/** Returns the segments of a root; undefined for one that is not an absolute, plain path. */
function readRoot(root: string): readonly string[] | undefined {
  if (!root.startsWith("/") || root.length > maxPathText || hasOddSign(root)) return undefined;
  return climb([], root);
}

/** Returns the path that a text is, a `file:` URL's with its escapes resolved; undefined where readers disagree about it. */
function pathOf(text: string): string | undefined {
  const path = /^file:/i.test(text) ? pathOfUrl(text) : text;
  return path === undefined || hasOddSign(path) ? undefined : path;
}

/** Reads `file:///path` and `file://localhost/path`, with escapes of nothing that could be a separator. */
function pathOfUrl(text: string): string | undefined {
  const path = /^file:\/\/(?:localhost)?(\/[^?#]*)$/.exec(text)?.[1];
  if (path === undefined || /%(?:2[ef]|5c|25)/i.test(path)) return undefined;
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}

/** Follows a path from a folder to the segments of its end; undefined where a segment is odd. Above the root there is the root. */
function climb(start: readonly string[], path: string): readonly string[] | undefined {
  const segments = [...start];
  for (const segment of path.split("/")) {
    if (segment === "" || segment === ".") continue;
    if (segment === "..") segments.pop();
    else if (isOddSegment(segment)) return undefined;
    else segments.push(segment);
  }
  return segments;
}

/** Returns whether a path that ends within the root is outside of it on the way. */
function leaves(path: string, base: readonly string[]): boolean {
  const segments: string[] = path.startsWith("/") ? [] : [...base];
  let wasInside = false;
  for (const segment of path.split("/")) {
    if (segment === "..") segments.pop();
    else if (segment !== "" && segment !== ".") segments.push(segment);
    const isInside = isWithin(segments, base);
    if (wasInside && !isInside) return true;
    wasInside ||= isInside;
    if (segment === ".." && !isInside) return true;
  }
  return false;
}

function isWithin(segments: readonly string[], base: readonly string[]): boolean {
  return base.length <= segments.length && base.every((segment, at) => segment === segments[at]);
}

function caseless(segment: string): string {
  return segment.normalize("NFKC").toLowerCase();
}

/** Folders of the system whose names lead elsewhere: `/proc/self/root`, `/dev/fd/0`, `/dev/tcp/…`. */
function isMagic(segments: readonly string[]): boolean {
  const [first = "", second = "", third = ""] = segments;
  if (first === "dev") return /^(?:fd|stdin|stdout|stderr|tcp|udp)$/.test(second);
  return first === "proc" && /^(?:self|thread-self|\d+)$/.test(second) && third !== "";
}
