/** Letters of Cyrillic and Greek, and the Latin letters for which readers take them. */
const alike = new Map(
  Array.from("аеорсухіѕјԁһӏԛԝАВЕКМНОРСТУХІЅЈӀΑΒΕΖΗΙΚΜΝΟΡΤΥΧονρ", (other, index) => [
    other,
    "aeopcyxisjdhlqwABEKMHOPCTYXISJIABEZHIKMNOPTYXovp"[index] as string,
  ]),
);

const invisible = /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/u;
/** Marks that are drawn over, under or around the character before them. */
const overlay = /[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]/u;
const digit = /\p{Nd}/u;
const blank = /\p{Zs}/u;
const dash = /[\p{Pd}\u2212]/u;
/** Compatibility forms of what credentials, numbers and addresses are made of: the marks, and what holds a letter or digit. */
const usualMark = /^[-.@_+/=:~]$/;
const visible = /^[\x21-\x7e]+$/;
const letter = /[A-Za-z0-9]/;

/** `join`: nothing, a blank or a dash, which matters between letters and digits; `alike`: in words of other letters. */
export type PlainKind = "character" | "join" | "alike";

export interface PlainCharacter {
  /** Printable ASCII, perhaps none. */
  readonly text: string;
  readonly kind: PlainKind;
}

const known = new Map<number, PlainCharacter | null>();
/** Fewer than there are: a text of all of them does not stay in memory. */
const maxKnown = 16_384;
/**
 * By code unit: 1 for what is known to be read as it stands, as nearly all is that texts of other scripts are made of. Never
 * for half a character.
 */
const standing = new Uint8Array(0x10000);

/** True for a code unit of which is known that `plainCharacter` returns null for it, whatever stands beside it. */
export function isKnownToStand(unit: number): boolean {
  return standing[unit] === 1;
}

/**
 * Returns the ASCII characters that a reader takes a character for: digits of every script, full-width and mathematical
 * letters, look-alikes; nothing for what is invisible. Null for one that a reader takes for itself.
 */
export function plainCharacter(code: number): PlainCharacter | null {
  if (standing[code] === 1) return null;
  let plain = known.get(code);
  if (plain === undefined) {
    plain = read(String.fromCodePoint(code), code);
    if (plain === null && code < standing.length && (code & 0xf800) !== 0xd800) standing[code] = 1;
    else if (known.size < maxKnown) known.set(code, plain);
  }
  return plain;
}

function read(character: string, code: number): PlainCharacter | null {
  if (invisible.test(character) || overlay.test(character)) return { text: "", kind: "join" };
  const like = alike.get(character);
  if (like !== undefined) return { text: like, kind: "alike" };
  if (digit.test(character)) return { text: String(digitValue(code)), kind: "character" };
  if (blank.test(character)) return { text: " ", kind: "join" };
  if (dash.test(character)) return { text: "-", kind: "join" };
  const text = character.normalize("NFKC");
  const isUsual = usualMark.test(text) || (visible.test(text) && letter.test(text));
  return isUsual ? { text, kind: "character" } : null;
}

/** Digits of a script are ten in a row, from zero on. */
function digitValue(code: number): number {
  let first = code;
  while (digit.test(String.fromCodePoint(first - 1))) first--;
  return (code - first) % 10;
}
