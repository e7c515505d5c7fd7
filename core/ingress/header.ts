import type { IncomingHttpHeaders } from "node:http";

/**
 * A header as one text; undefined where it is absent. Copies are joined: the guard has refused a second one of every
 * header where that would say something else.
 */
export function headerText(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}
