import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createInterface } from "node:readline";

/**
 * The least MCP server whose answers are as large as asked: over HTTP as JSON, below `/stream` in an event stream, and with
 * `stdio` over its pipes.
 */
interface Call {
  readonly id?: number;
  readonly method: string;
  readonly params?: { readonly name?: string; readonly arguments?: object };
}

interface Wanted {
  readonly kind: "text" | "rows" | "members";
  readonly megabytes: number;
}

const handshake = {
  protocolVersion: "2025-11-25",
  capabilities: { tools: {} },
  serverInfo: { name: "large", version: "1" },
};
const inputSchema = { type: "object" };
const tools = [
  { name: "give", description: "Gives as much as asked", inputSchema },
  { name: "echo", description: "Gives back what it gets", inputSchema },
];

const megabyte: Readonly<Record<string, (at: number) => readonly (readonly [string, unknown])[]>> = {
  rows: (at) =>
    Array.from({ length: 5_000 }, (_, row) => [
      `${at}-${row}`,
      { id: at * 5_000 + row, name: `customer ${row}`, note: "n".repeat(140) },
    ]),
  members: (at) => Array.from({ length: 6_000 }, (_, member) => [`m-${at}-${member}-${"n".repeat(140)}`, member]),
};

function give({ kind, megabytes }: Wanted): object {
  if (kind === "text") {
    const item = { type: "text", text: "lorem ipsum dolor ".repeat(58_000) };
    return { content: Array.from({ length: megabytes }, () => item) };
  }
  const entries = Array.from({ length: megabytes }, (_, at) => megabyte[kind]?.(at) ?? []).flat();
  const structuredContent = kind === "rows" ? { rows: entries.map(([, row]) => row) } : Object.fromEntries(entries);
  return { content: [{ type: "text", text: "as asked" }], structuredContent };
}

function resultOf({ method, params }: Call): object | null {
  if (method === "initialize") return handshake;
  if (method === "tools/list") return { tools };
  if (method !== "tools/call") return null;
  const { name, arguments: args = {} } = params ?? {};
  return name === "give" ? give(args as Wanted) : { content: [{ type: "text", text: JSON.stringify(args) }] };
}

function answer(call: Call): string {
  const result = resultOf(call);
  const error = { code: -32601, message: "method not found" };
  return JSON.stringify({ jsonrpc: "2.0", id: call.id, ...(result === null ? { error } : { result }) });
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  if (request.method !== "POST") return void response.writeHead(405).end();
  const call = JSON.parse(Buffer.concat(chunks).toString()) as Call;
  if (call.id === undefined) return void response.writeHead(202).end();
  const isStream = request.url === "/stream";
  response.writeHead(200, { "content-type": isStream ? "text/event-stream" : "application/json" });
  response.end(isStream ? `data: ${answer(call)}\n\n` : answer(call));
}

if (process.argv[2] === "stdio") {
  createInterface({ input: process.stdin }).on("line", (line) => {
    const call = JSON.parse(line) as Call;
    if (call.id !== undefined) process.stdout.write(`${answer(call)}\n`);
  });
} else {
  const server = createServer((request, response) => void serve(request, response));
  server.listen(0, "127.0.0.1", () => {
    process.stdout.write(`${JSON.stringify({ ready: true, port: (server.address() as AddressInfo).port })}\n`);
  });
}
