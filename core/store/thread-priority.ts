import { getPriority, setPriority } from "node:os";

/** Lets other threads go first, for the rest of this thread. */
export function lowerPriority(): void {
  // Linux has a priority per thread; elsewhere this would change the whole process.
  if (process.platform === "linux") setPriority(Math.min(19, getPriority() + 10));
}
