import { escapeHidden } from "../kernel/visible-text.ts";

/** Control, format (bidi, zero-width, tag) and surrogate characters, private use, line and paragraph separators. */
const unprintable = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/u;
const longestShown = 256;

/**
 * Text from an action, fit to be read by a person: at most 256 characters, and nothing in it that a terminal or
 * a reader's eye would take for something else (`\u{202e}` in place of the character).
 */
export function showText(text: string): string {
  const characters = Array.from(text.slice(0, longestShown * 2 + 2));
  const cut = characters.length > longestShown ? `${characters.slice(0, longestShown).join("")}…` : text;
  return escapeHidden(cut);
}

/** Whether a text of an author holds a character that is not seen. */
export function hasUnprintable(text: string): boolean {
  return text.search(unprintable) !== -1;
}
