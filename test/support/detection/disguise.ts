/** A way to hide a text from those who look for it. */
export interface Disguise {
  readonly name: string;
  readonly wear: (text: string) => string;
}

const lookalikes: Readonly<Record<string, string>> = { a: "а", e: "е", o: "о", p: "р", c: "с", i: "і", x: "х" };
const replaceLetters = (text: string, change: (letter: string) => string): string => text.replace(/[a-z]/gi, change);
const shifted = (text: string, by: number): string =>
  [...text].map((each) => (/[!-~]/.test(each) ? String.fromCodePoint(each.charCodeAt(0) + by) : each)).join("");

export const disguises: readonly Disguise[] = [
  { name: "in upper case", wear: (text) => text.toUpperCase() },
  { name: "between other texts", wear: (text) => `${"The bridge was built in 1907. ".repeat(40)}${text} It is red.` },
  { name: "as JSON in a text", wear: (text) => JSON.stringify({ result: { note: `see\n${text}` } }) },
  { name: "in base64", wear: (text) => `data:text/plain;base64,${Buffer.from(text).toString("base64")}` },
  { name: "as invisible tags", wear: (text) => `Hello.${tags(text)}` },
  { name: "with zero-width spaces in words", wear: (text) => text.replace(/(\w\w)(\w\w)/g, "$1\u200b$2") },
  { name: "with Cyrillic look-alikes", wear: (text) => replaceLetters(text, (letter) => lookalikes[letter] ?? letter) },
  { name: "in full-width letters", wear: (text) => shifted(text, 0xfee0) },
  { name: "with accents on vowels", wear: (text) => text.replace(/[aeiou]/g, "$&\u0301") },
  { name: "in an HTML comment", wear: (text) => `<p>Welcome</p><!-- ${text.replaceAll("-->", "")} --><p>Bye</p>` },
  { name: "with a mark between letters", wear: (text) => text.replace(/(\p{L})(?=\p{L})/gu, "$1.") },
  {
    name: "with digits for letters",
    wear: (text) => text.replace(/[oei]/g, (letter) => ({ o: "0", e: "3", i: "1" })[letter] ?? ""),
  },
  { name: "backwards", wear: (text) => [...text].reverse().join("") },
  { name: "in ROT13", wear: (text) => replaceLetters(text, rot13) },
];

function tags(text: string): string {
  return [...text].map((each) => (each <= "~" ? String.fromCodePoint(0xe0000 + each.charCodeAt(0)) : each)).join("");
}

function rot13(letter: string): string {
  const first = letter <= "Z" ? 65 : 97;
  return String.fromCharCode(((letter.charCodeAt(0) - first + 13) % 26) + first);
}
