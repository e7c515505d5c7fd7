import type { Dispatcher } from "undici";

/** Reads the body of an answer. Returns undefined where it has more than `maxBytes`, and ends its connection then. */
export async function readBody(stream: Dispatcher.ResponseData["body"], maxBytes: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  // Leaving the loop destroys the body, and with it the connection.
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}
