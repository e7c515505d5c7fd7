import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** The least MCP server that can be called: three tools, answered alike from memory. Its own cost is the floor. */
const inputSchema = { type: "object", properties: { id: { type: "string" } } };
const tools = [
  { name: "lookup", description: "Looks a customer up", inputSchema, annotations: { readOnlyHint: true } },
  { name: "change", description: "Changes a customer", inputSchema },
  { name: "wipe", description: "Deletes a customer", inputSchema },
];
const content = [{ type: "text", text: "customer 4711: Ada Lovelace, London, since 1843 ".repeat(8) }];

function answer(method: string): object | null {
  if (method === "initialize") {
    return { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "bench", version: "1" } };
  }
  if (method === "tools/list") return { tools };
  if (method === "tools/call") return { content };
  return null;
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  if (request.method !== "POST") return void response.writeHead(405).end();
  const message = JSON.parse(Buffer.concat(chunks).toString()) as { id?: number; method: string };
  if (message.id === undefined) return void response.writeHead(202).end();
  const result = answer(message.method);
  const error = { code: -32601, message: "method not found" };
  const text = JSON.stringify({ jsonrpc: "2.0", id: message.id, ...(result === null ? { error } : { result }) });
  response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(text) }).end(text);
}

const server = createServer((request, response) => void serve(request, response));
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${JSON.stringify({ ready: true, port: (server.address() as AddressInfo).port })}\n`);
});
