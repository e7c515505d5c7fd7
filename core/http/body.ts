import type { IncomingMessage } from "node:http";
import { GatewayError } from "../action/error.ts";
import type { Json } from "../action/json.ts";
import { parseStrictJson } from "../action/strict-json.ts";
import type { BodyLimits } from "../operation/operation.ts";

const jsonType = /^application\/json(?:\s*;\s*charset="?utf-8"?)?$/i;

/**
 * Reads a request body as one strict JSON value. Only `application/json` without content coding is accepted:
 * a foreign web page can send only forms and plain text. Throws UNSUPPORTED_MEDIA_TYPE, BODY_TOO_LARGE,
 * and what `parseStrictJson` throws.
 */
export async function readJsonBody(request: IncomingMessage, limits: BodyLimits): Promise<Json> {
  const { "content-type": type, "content-encoding": coding } = request.headers;
  if (!jsonType.test(type ?? "")) {
    throw new GatewayError("UNSUPPORTED_MEDIA_TYPE", "expected `content-type: application/json`");
  }
  if (coding !== undefined && coding !== "identity") {
    throw new GatewayError("UNSUPPORTED_MEDIA_TYPE", "expected a body without content-encoding");
  }
  return parseStrictJson(await readBytes(request, limits.bytes), limits.json);
}

function readBytes(request: IncomingMessage, maxBytes: number): Promise<Uint8Array> {
  const declared = Number(request.headers["content-length"] ?? 0);
  if (declared > maxBytes) return Promise.reject(tooLarge(maxBytes));
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const keep = (chunk: Buffer): void => {
      size += chunk.length;
      if (size <= maxBytes) chunks.push(chunk);
      else {
        chunks.length = 0;
        request.off("data", keep).pause();
        reject(tooLarge(maxBytes));
      }
    };
    request.on("data", keep);
    request.once("end", () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, size)));
    request.once("error", (cause) => reject(new GatewayError("INVALID_REQUEST", "the body broke off", { cause })));
    request.once("close", () => {
      if (!request.complete) reject(new GatewayError("INVALID_REQUEST", "the body broke off"));
    });
  });
}

function tooLarge(maxBytes: number): GatewayError {
  return new GatewayError("BODY_TOO_LARGE", `expected at most ${maxBytes} bytes`);
}
