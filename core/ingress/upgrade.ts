import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";

/** Takes over the connection of a request to speak WebSocket on it. */
export type Upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

const hopHeaders: ReadonlySet<string> = new Set(["upgrade", "http2-settings"]);

/**
 * Lets `upgrade` have the requests that ask for WebSocket. Node hands over each request that asks for any other protocol
 * too, where some clients offer HTTP/2 with all they send: those are served as if they had not asked.
 */
export function acceptUpgrades(server: Server, upgrade: Upgrade): void {
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (request.headers.upgrade?.toLowerCase() === "websocket") return upgrade(request, socket, head);
    socket.unshift(Buffer.concat([headOf(request), head]));
    server.emit("connection", socket);
  });
}

/** The request's own head, every header as it came, but for what asks for another protocol. */
function headOf({ method, url, httpVersion, rawHeaders }: IncomingMessage): Buffer {
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const [name, value] = [rawHeaders[index] as string, rawHeaders[index + 1] as string];
    if (hopHeaders.has(name.toLowerCase())) continue;
    lines.push(`${name}: ${name.toLowerCase() === "connection" ? withoutUpgrade(value) : value}`);
  }
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
}

function withoutUpgrade(connection: string): string {
  const kept = connection.split(",").filter((token) => !hopHeaders.has(token.trim().toLowerCase()));
  return kept.join(",") || "keep-alive";
}
