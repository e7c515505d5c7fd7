import type { IncomingHttpHeaders } from "node:http";
import { GatewayError } from "../kernel/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../kernel/json.ts";
import { type JsonBounds, parseStrictJson } from "../kernel/strict-json.ts";
import type { Exchange } from "./exchange.ts";

/** The whole body of at most `maxBytes`. Beyond that the exchange ends, with PROVIDER_INVALID. */
export async function readBody(exchange: Exchange, maxBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const chunk = await exchange.read();
    if (chunk === undefined) return Buffer.concat(chunks, size);
    size += chunk.length;
    if (size > maxBytes) throw new GatewayError("PROVIDER_INVALID", `expected at most ${maxBytes} bytes, got more`);
    chunks.push(chunk);
  }
}

/** The object that a body holds. Throws PROVIDER_INVALID for anything else. */
export function parseObject(bytes: Uint8Array, bounds: JsonBounds): JsonObject {
  let value: Json;
  try {
    value = parseStrictJson(bytes, bounds);
  } catch (cause) {
    throw new GatewayError("PROVIDER_INVALID", GatewayError.from(cause).publicMessage, { cause });
  }
  if (!isJsonObject(value)) throw new GatewayError("PROVIDER_INVALID", "expected a JSON object, got another value");
  return value;
}

/** Throws PROVIDER_INVALID unless the body has the type that was asked for, and no encoding: none was asked for. */
export function checkType(headers: IncomingHttpHeaders, expected: string): void {
  const encoding = headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity") {
    throw new GatewayError("PROVIDER_INVALID", "expected an answer without content-encoding");
  }
  const type = (headers["content-type"] ?? "").split(";", 1)[0] as string;
  if (type.trim().toLowerCase() === expected) return;
  throw new GatewayError("PROVIDER_INVALID", `expected an answer of type \`${expected}\`, got another`);
}
