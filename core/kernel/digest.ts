import { hash } from "node:crypto";

/** SHA-256 of the bytes (a string counts as UTF-8), in lower-case hex. */
export function sha256Hex(data: string | Uint8Array): string {
  return hash("sha256", data, "hex");
}

/** SHA-256 in the form that names a content: `sha256:<hex>`. */
export function contentDigest(data: string | Uint8Array): string {
  return `sha256:${sha256Hex(data)}`;
}
