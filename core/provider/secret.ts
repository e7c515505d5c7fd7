import { GatewayError } from "../kernel/error.ts";
import type { Json } from "../kernel/json.ts";

/** Keeps the key of one provider out of whatever goes to clients. */
export class ProviderSecret {
  readonly #key: string | null;

  constructor(key: string | null) {
    this.#key = key;
  }

  /** The same value without the key. */
  remove(value: Json): Json {
    if (this.#key === null) return value;
    // No character of a key is ever escaped in JSON.
    return JSON.parse(JSON.stringify(value).replaceAll(this.#key, "[key]")) as Json;
  }

  /** Throws PROVIDER_INVALID for an answer that shows the key. */
  refuse(bytes: Uint8Array): void {
    if (this.#key === null || !asBuffer(bytes).includes(this.#key)) return;
    throw new GatewayError("PROVIDER_INVALID", "expected an answer without the gateway's own key, got it");
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
