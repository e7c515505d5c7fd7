import { hasUnseen } from "./name-sign.ts";

/** Characters that readers take for `/`, `\` or `.` although they do not become one under NFKC, or only in some code pages. */
const alikeMarks = /[\u2044\u2215\u2216\u2571\u2572\u29f5\u29f8\u29f9\u3002\u0701\u0702\ua4f8\ua60e\u00a5\u20a9]/;

/** A character beyond ASCII that becomes one of these under NFKC, as `／` and `…` do. */
function becomesMark(text: string): boolean {
  const plain = text.normalize("NFKC");
  return ["/", "\\", ".", ":", "%", "~", "$"].some((mark) => countOf(plain, mark) !== countOf(text, mark));
}

function countOf(text: string, mark: string): number {
  let count = 0;
  for (let at = text.indexOf(mark); at !== -1; at = text.indexOf(mark, at + 1)) count++;
  return count;
}

const ascii = /^[ -~]*$/;

/**
 * Signs of what a shell, a program or a system computes: escapes, variables, patterns, braces, commands, quotes, and the
 * separators of other systems. Printable ASCII.
 */
const computed = /[\\`"*?{}|<>;]|&&|%[0-9a-f]{2}|%u[0-9a-f]{2}|%[a-z_][\w()]*%|\$[\w{(@*#?!$'-]|^['@~-]|^\s|\s$|\/\//i;

/** Returns true for a path whose letters alone let two readers disagree. */
export function hasOddSign(path: string): boolean {
  // `@types/node` is a folder; curl and compilers read the file behind `@/`, `@~` and `@.`.
  if (computed.test(/^@[a-z0-9]/i.test(path) ? path.slice(1) : path)) return true;
  if (ascii.test(path)) return false;
  return (
    hasUnseen(path) || alikeMarks.test(path.normalize("NFKC")) || path !== path.normalize("NFC") || becomesMark(path)
  );
}

/** Names that Windows takes for devices, in any folder and with any ending. */
const device = /^(?:con|prn|aux|nul|com[\d¹²³]|lpt[\d¹²³]|conin\$|conout\$|clock\$)(?:\.|$)/i;
const shortName = /^[^.~]{1,6}~\d{1,2}(?:\.[^.]{0,3})?$/;

/** Returns true for a name, other than `.` and `..`, that not every system takes for the file of that name. */
export function isOddSegment(segment: string): boolean {
  if (segment.startsWith("..") || segment.endsWith(".") || segment.endsWith(" ") || segment.startsWith(" "))
    return true;
  if (device.test(segment) || shortName.test(segment)) return true;
  return hasStream(segment) || readsAsParent(segment);
}

/** Returns true for `file:stream` and `C:`, but not for the colons of a time. */
function hasStream(segment: string): boolean {
  return segment.includes(":") && /(?:^|[^0-9]):|:(?:[^0-9]|$)/.test(segment);
}

/** Returns true for a pattern of brackets that stands for `..`, such as `.[.]`. */
function readsAsParent(segment: string): boolean {
  return segment.includes("[") && segment.replace(/\[[^\][]*\]/g, (set) => (set.includes(".") ? "." : "-")) === "..";
}
