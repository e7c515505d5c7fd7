import { setFlagsFromString } from "node:v8";

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
  setFlagsFromString("--opt");
}
