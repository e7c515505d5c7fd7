import { once } from "node:events";
import type { Socket } from "node:net";
import { dial } from "../../support/wire.ts";

const connections = 8;
/** Requests a connection sends before it reads: enough to keep the gateway busy. */
const pipelined = 16;

/** What the requests ask for: tools, or models. */
export type Floodable = "tools" | "models";

/**
 * Sends `count` times three requests, each with a session label and, of tools, a client name that nobody used before,
 * pipelined over kept connections. The first of three asks for a tool or a model that exists, so that it leaves a decision
 * and an outcome; the others name what nobody has.
 */
export async function flood(
  url: string,
  key: string,
  count: number,
  prefix: string,
  what: Floodable = "tools",
): Promise<void> {
  const encode = what === "tools" ? encodeCall : encodeModelRequest;
  await pour(url, count * 3, (index) => encode(new URL(url).host, key, `${prefix}-${index}`, index));
}

/** Sends `count` requests, pipelined over kept connections. How many answers there were of each status. */
export async function pour(
  url: string,
  count: number,
  request: (index: number) => string,
): Promise<Readonly<Record<string, number>>> {
  let sent = 0;
  const next = (): number | null => (sent < count ? sent++ : null);
  const statuses: Record<string, number> = {};
  await Promise.all(Array.from({ length: connections }, () => drive(url, request, next, statuses)));
  return statuses;
}

async function drive(
  url: string,
  request: (index: number) => string,
  next: () => number | null,
  statuses: Record<string, number>,
): Promise<void> {
  const socket = await dial(url);
  const answered = countAnswers(socket, statuses);
  let total = 0;
  for (;;) {
    const batch = Array.from({ length: pipelined }, next).filter((each) => each !== null);
    if (batch.length === 0) break;
    socket.write(batch.map(request).join(""));
    total += batch.length;
    while (answered() < total) await once(socket, "data");
  }
  socket.destroy();
}

/** Counts status lines, which no body of ours holds. */
function countAnswers(socket: Socket, statuses: Record<string, number>): () => number {
  let count = 0;
  let tail = "";
  socket.on("data", (chunk: Buffer) => {
    const text = tail + chunk.toString("latin1");
    let end = 0;
    for (const { 1: status = "", index, 0: line } of text.matchAll(/HTTP\/1\.1 (\d{3})/g)) {
      statuses[status] = (statuses[status] ?? 0) + 1;
      count++;
      end = index + line.length;
    }
    tail = text.slice(Math.max(end, text.length - "HTTP/1.1 20".length));
  });
  return () => count;
}

function encodeCall(host: string, key: string, name: string, index: number): string {
  const meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name, version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const tool = index % 3 === 0 ? "echo" : name;
  const params = { name: tool, arguments: {}, _meta: meta };
  const body = JSON.stringify({ jsonrpc: "2.0", id: index, method: "tools/call", params });
  return (
    `POST /mcp HTTP/1.1\r\nhost: ${host}\r\nx-api-key: ${key}\r\ncontent-type: application/json\r\n` +
    `mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: ${tool}\r\n` +
    `x-gateway-session-id: ${name}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  );
}

function encodeModelRequest(host: string, key: string, name: string, index: number): string {
  const model = index % 3 === 0 ? "mock" : name;
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "hello" }] });
  return (
    `POST /v1/chat/completions HTTP/1.1\r\nhost: ${host}\r\nx-api-key: ${key}\r\ncontent-type: application/json\r\n` +
    `x-gateway-session-id: ${name}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  );
}
