import { setFlagsFromString } from "node:v8";

/** Set while V8 optimizes nothing. */
let timer: NodeJS.Timeout | undefined;

/**
 * Lets V8 run code without optimizing it, until `resumeOptimizing` or for `ms` milliseconds. What starts runs much code a few
 * times: V8 would spend a third of the CPU of a start, on threads of its own, on functions that are hardly called again.
 */
export function pauseOptimizing(ms: number): void {
  clearTimeout(timer);
  setFlagsFromString("--no-opt");
  timer = setTimeout(resumeOptimizing, ms).unref();
}

/** Lets V8 optimize what runs often from now on. */
export function resumeOptimizing(): void {
  clearTimeout(timer);
  timer = undefined;
  setFlagsFromString("--opt");
}

/** Lets V8 optimize during work that goes through many bytes, also amid a pause. */
export async function whileOptimizing<T>(work: () => Promise<T>): Promise<T> {
  setFlagsFromString("--opt");
  try {
    return await work();
  } finally {
    if (timer !== undefined) setFlagsFromString("--no-opt");
  }
}
