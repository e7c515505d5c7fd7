import { InvalidArgumentError } from "commander";

/** How many, as an argument. */
export function parseCount(text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count >= 1 && count <= 1_000_000) return count;
  throw new InvalidArgumentError("expected a whole number from 1 to 1000000");
}
