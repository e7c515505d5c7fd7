import type { IncomingMessage } from "node:http";
import { GatewayError } from "../kernel/error.ts";
import { isJsonObject, type Json } from "../kernel/json.ts";
import { type BodyLimits, readJsonBody } from "./body.ts";

/** Characters (UTF-16 code units) of one text; those of its ends that are blank do not count towards the least. */
export interface TextBounds {
  readonly least: number;
  readonly most: number;
}

/** What people write to the admin port is small. */
const limits: BodyLimits = { bytes: 65_536, json: { depth: 8, nodes: 64, stringLength: 65_536, reader: "exact" } };

/**
 * Reads a request body whose members are texts; none at all is as good as `{}`. A member that is neither named nor in
 * `ignored` is refused. Throws INVALID_PARAMS, and what `readJsonBody` throws.
 */
export async function readTexts<Name extends string>(
  request: IncomingMessage,
  named: Readonly<Record<Name, TextBounds>>,
  ignored: readonly string[] = [],
): Promise<{ readonly [name in Name]?: string }> {
  const body = hasBody(request) ? await readJsonBody(request, limits) : {};
  if (!isJsonObject(body)) throw new GatewayError("INVALID_PARAMS", "expected the body to be an object");
  const texts: { [name in Name]?: string } = {};
  for (const [name, value] of Object.entries(body)) {
    if (Object.hasOwn(named, name)) texts[name as Name] = checkText(name, value, named[name as Name]);
    else if (!ignored.includes(name)) {
      const expected = Object.keys(named).map((each) => `\`${each}\``);
      const got = `\`${name.slice(0, 64).toWellFormed()}\``;
      throw new GatewayError("INVALID_PARAMS", `expected only ${expected.join(", ")}, got ${got}`);
    }
  }
  return texts;
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

function checkText(name: string, value: Json, { least, most }: TextBounds): string {
  const length = typeof value === "string" ? value.trim().length : -1;
  if (typeof value === "string" && length >= least && value.length <= most) return value;
  const got = typeof value === "string" ? `${value.length}` : "something else";
  throw new GatewayError("INVALID_PARAMS", `expected \`${name}\` to be ${least} to ${most} characters, got ${got}`);
}
