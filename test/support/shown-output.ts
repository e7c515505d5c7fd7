/**
 * Whether `actual` is what a document shows. In `shown`, `…` stands for anything within a line, and a line that is only
 * `…` for any number of lines. All else is compared to the letter, the end of the last line apart.
 */
export function isAsShown(shown: string, actual: string): boolean {
  const lines = trimEnd(shown).split("\n").map(linePattern);
  return new RegExp(`^${lines.join("")}$`, "u").test(`${trimEnd(actual)}\n`);
}

function linePattern(line: string): string {
  if (line.trim() === "…") return "(?:.*\\n)*?";
  return `${line.split("…").map(escapePattern).join(".*?")}\\n`;
}

function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/gu, "\\$&");
}

function trimEnd(text: string): string {
  return text.replace(/\n+$/, "");
}
