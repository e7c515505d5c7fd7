/** What is said of an error that nobody caught. */
export interface Crash {
  readonly error: string;
  /** As Node has them: `ERR_INVALID_ARG_TYPE`, `EPIPE`. */
  readonly code: string | null;
  /** Where it was thrown, the innermost place first. */
  readonly stack: readonly string[];
}

const mostFrames = 16;

/**
 * An error without its words: message, cause and whatever else hangs on it may quote arguments, answers and keys, and
 * Node would print all of that. Where it was thrown says enough.
 */
export function crashOf(cause: unknown): Crash {
  if (!(cause instanceof Error)) return { error: typeof cause, code: null, stack: [] };
  const { code } = cause as NodeJS.ErrnoException;
  return {
    error: Object.getPrototypeOf(cause).constructor.name,
    code: typeof code === "string" && /^[A-Z][A-Z0-9_]{1,63}$/.test(code) ? code : null,
    stack: framesOf(cause),
  };
}

/** None where the stack does not begin with the message as it is: lines of the message might pass for places. */
function framesOf({ message, stack = "" }: Error): readonly string[] {
  const [head = ""] = /^\w+(?: \[\w+\])?(?:: )?/.exec(stack) ?? [];
  if (head === "" || !stack.startsWith(message, head.length)) return [];
  const lines = stack.slice(head.length + message.length).split("\n");
  const frames = lines.filter((line) => line.startsWith("    at "));
  return frames.slice(0, mostFrames).map((line) => line.trim());
}
