/**
 * Flags for the Node processes of command lines, from `TEST_NODE_FLAGS`, separated by spaces. They live
 * for seconds: `--no-opt --liftoff-only` spares them what V8 optimizes for later.
 */
export const nodeFlags: readonly string[] = (process.env.TEST_NODE_FLAGS ?? "")
  .split(" ")
  .filter((flag) => flag !== "");
