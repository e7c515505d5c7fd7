import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import type { ModelApi } from "../../core/action/model-api.ts";
import { answerEvents, answerOf, type ModelReply } from "../fixture/model-reply.ts";

/**
 * The least model provider that can be asked: both APIs, one answer of 200 tokens, written from memory, each token a chunk.
 * Below `/paced` its tokens come 10 ms apart. Its own cost is the floor.
 */
const paceMs = 10;
const reply: ModelReply = { text: Array.from({ length: 200 }, (_, n) => `token${n}`).join(" ") };
const answers = { chat: answer("chat"), messages: answer("messages") } as const;

interface Prepared {
  readonly whole: Buffer;
  readonly events: readonly Buffer[];
}

function answer(api: ModelApi): Prepared {
  return {
    whole: Buffer.from(JSON.stringify(answerOf(api, reply))),
    events: answerEvents(api, reply).map((event) => Buffer.from(event)),
  };
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const { whole, events } = answers[request.url?.endsWith("/messages") ? "messages" : "chat"];
  const { stream } = JSON.parse(Buffer.concat(chunks).toString()) as { stream?: boolean };
  if (stream !== true) {
    response.writeHead(200, { "content-type": "application/json", "content-length": whole.length }).end(whole);
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  const isPaced = request.url?.startsWith("/paced/") === true;
  for (const event of events) {
    if (isPaced) await pause(paceMs);
    response.write(event);
  }
  response.end();
}

const server = createServer((request, response) => void serve(request, response));
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${JSON.stringify({ ready: true, port: (server.address() as AddressInfo).port })}\n`);
});
