/** One entry of the log as a person at a terminal reads it: time of day, level, message, then the fields. */
export function terminalLine(json: string): string {
  const { time, level, msg, ...fields } = JSON.parse(json) as Readonly<Record<string, unknown>>;
  const words = [String(time).slice(11, 19), String(level).padEnd(5), visible(String(msg))];
  for (const [name, value] of Object.entries(fields)) words.push(`${visible(name)}=${fieldText(value)}`);
  return `${words.join(" ")}\n`;
}

function fieldText(value: unknown): string {
  if (typeof value === "string" && /^[\x21\x23-\x7e]+$/.test(value)) return value;
  return visible(JSON.stringify(value));
}

/** Whatever could move the cursor, colour the screen or turn the direction of text comes out as its code. */
function visible(text: string): string {
  return text.replace(/[^\x20-\x7e\p{L}\p{N}]/gu, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`);
}
