import type { IncomingMessage } from "node:http";

const mostBytes = 32 * 1024 * 1024;
const longestMs = 2_000;

/**
 * Reads and drops what is left of a request's body, so that its sender gets to read the answer: a connection that is
 * closed on a peer that still sends is reset, and what was answered is lost with it.
 * Resolves with whether the body ended, within 32 MiB and 2 s. If not, the connection can carry no further request.
 */
export function discardBody(request: IncomingMessage): Promise<boolean> {
  if (request.readableEnded || request.destroyed) return Promise.resolve(request.complete);
  if (Number(request.headers["content-length"] ?? 0) > mostBytes) return Promise.resolve(false);
  return new Promise((resolve) => {
    let size = 0;
    const count = (chunk: Buffer): void => {
      size += chunk.length;
      if (size > mostBytes) finish(false);
    };
    const finish = (ended: boolean): void => {
      clearTimeout(timer);
      request.off("data", count).pause();
      resolve(ended);
    };
    const timer = setTimeout(() => finish(false), longestMs);
    request.once("end", () => finish(true));
    request.once("close", () => finish(request.complete));
    request.on("data", count).resume();
  });
}
