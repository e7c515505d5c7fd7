import type { Duplex } from "node:stream";

/** How long a peer has to read the last words before its connection is cut. */
const lingerMs = 1_000;

/** Says why, as problem+json, on a connection that nothing more will be read from, and ends it. */
export function endWith(socket: Duplex, status: number, title: string, told: object = {}): void {
  const body = JSON.stringify({ type: "about:blank", title, status, ...told });
  socket.end(
    `HTTP/1.1 ${status} ${title}\r\nconnection: close\r\ncontent-type: application/problem+json\r\nx-content-type-options: nosniff\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  // A peer that does not hang up in its turn would hold the connection for as long as it likes.
  setTimeout(() => socket.destroy(), lingerMs).unref();
}
