/** One command of a transcript and what must come of it, in the notation of `isAsShown`. */
export interface Step {
  readonly command: string;
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number;
}

/**
 * Reads a transcript: `$ command`, `> ` before its further lines, then standard output as it is, standard error behind
 * `! `, and `exit <code>` unless it is 0. What stands before the first command is a comment.
 */
export function parseTranscript(text: string): readonly Step[] {
  const steps: Step[] = [];
  for (const line of text.split("\n")) {
    const last = steps.at(-1);
    if (line.startsWith("$ ")) steps.push({ command: line.slice(2), stdout: "", stderr: "", code: 0 });
    else if (last !== undefined) steps.splice(-1, 1, extend(last, line));
  }
  return steps;
}

function extend(step: Step, line: string): Step {
  if (line.startsWith("> ")) return { ...step, command: `${step.command}\n${line.slice(2)}` };
  if (line.startsWith("! ") || line === "!") return { ...step, stderr: `${step.stderr}${line.slice(2)}\n` };
  const code = /^exit (\d+)$/.exec(line)?.[1];
  if (code !== undefined) return { ...step, code: Number(code) };
  return { ...step, stdout: `${step.stdout}${line}\n` };
}
