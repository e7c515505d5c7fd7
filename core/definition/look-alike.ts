import { scriptNote } from "../action/visible-text.ts";

const alike: readonly (readonly [RegExp, string])[] = [
  [/[_.-]/g, ""],
  [/rn/g, "m"],
  [/vv/g, "w"],
  [/cl/g, "d"],
  [/0/g, "o"],
  [/[1i|]/g, "l"],
  [/5/g, "s"],
];

/** Returns the form that names share which are easily taken for one another: without case, separators and like letters. */
export function nameSkeleton(name: string): string {
  return alike.reduce((text, [pattern, plain]) => text.replace(pattern, plain), name.toLowerCase());
}

/** Returns true for a text with a word that mixes letters of Latin and a script that looks like it. */
export function mixesScripts(text: string): boolean {
  return text.split(/\s+/).some((word) => scriptNote(word) !== undefined);
}

const word = /[A-Za-z0-9_-]+/g;
const compound = /[A-Za-z0-9][_-][A-Za-z0-9]|[a-z0-9][A-Z]/;
const order = /\b(?:must|always|never|instead of|do not|don't|before|after|whenever|when|every time)\b/i;
const aroundOrder = 80;

/**
 * Returns the first of `names` that a text gives an order about. Only names of several words count: the others are words of
 * the language.
 */
export function orderedName(text: string, isName: (name: string) => boolean): string | undefined {
  for (const { 0: name, index } of text.matchAll(word)) {
    if (!compound.test(name) || !isName(name)) continue;
    if (order.test(text.slice(Math.max(0, index - aroundOrder), index + name.length + aroundOrder))) return name;
  }
  return undefined;
}
