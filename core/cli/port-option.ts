import { InvalidArgumentError } from "commander";

/** Three ports in a row. */
const highestPort = 65_533;

/** The first of three ports in a row, or 0 for any free ones. */
export function parseFirstPort(value: string): number {
  const port = /^\d{1,5}$/.test(value) ? Number(value) : Number.NaN;
  if (port <= highestPort) return port;
  throw new InvalidArgumentError(`expected 1 to ${highestPort}, or 0 for any free ports`);
}
