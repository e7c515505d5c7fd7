import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { dial, encodeRequest, send, type WireRequest, type WireResponse } from "./wire.ts";

export interface StreamEvent {
  readonly event: string;
  readonly data: string;
}

/** An event stream on a connection of its own, read as it comes. */
export interface EventStream {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly socket: Socket;
  /** Everything that has come so far, comments left out. */
  readonly events: () => readonly StreamEvent[];
  /** The JSON of each `message` so far. */
  readonly messages: () => readonly Message[];
  /** Whether the peer has ended it. */
  readonly ended: () => boolean;
  /** The first message, past or to come, that `wanted` says yes to. Rejects after 5 s. */
  awaitMessage(wanted: (message: Message) => boolean): Promise<Message>;
  /** Resolves when the peer has ended it. Rejects after 5 s. */
  awaitEnd(): Promise<void>;
  hangUp(): void;
}

/** Any JSON-RPC message, as far as tests look into it. */
export interface Message {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: { readonly content?: readonly { readonly text: string }[]; readonly isError?: boolean };
  readonly error?: { readonly code: number; readonly message: string; readonly data?: { readonly code: string } };
}

const deadlineMs = 60_000;

/** Sends a request and resolves with what it answers from the moment its headers are there. */
export async function openStream(url: string, request: WireRequest): Promise<EventStream> {
  const socket = await dial(url);
  let text = "";
  let ended = false;
  socket.setEncoding("latin1");
  socket.on("data", (chunk) => {
    text += String(chunk);
  });
  for (const end of ["end", "error", "close"]) {
    socket.on(end, () => {
      ended = true;
    });
  }
  socket.write(encodeRequest(url, request));
  await until(() => text.includes("\r\n\r\n"));
  const body = (): string => unchunk(text.slice(text.indexOf("\r\n\r\n") + 4));
  const events = (): readonly StreamEvent[] => readEvents(body());
  const messages = (): readonly Message[] =>
    events().flatMap(({ event, data }) => (event === "message" ? [JSON.parse(data) as Message] : []));
  return {
    ...readHead(text),
    socket,
    events,
    messages,
    ended: () => ended,
    awaitMessage: (wanted) => until(() => messages().find(wanted)),
    awaitEnd: async () => void (await until(() => ended)),
    hangUp: () => void socket.destroy(),
  };
}

/** The answer to one request; of the stream of `/sse`, which would not end, what stands before it. */
export async function readAnswer(url: string, request: WireRequest): Promise<Pick<WireResponse, "status" | "headers">> {
  if (request.method !== "GET" || !/^\/sse(\?|$)/.test(request.target ?? "")) return send(url, request);
  const stream = await openStream(url, request);
  stream.hangUp();
  return stream;
}

/** Asks until there is something. Rejects after `withinMs`. */
export async function until<T>(
  read: () => T | undefined | false | Promise<T | undefined | false>,
  withinMs: number = deadlineMs,
): Promise<T> {
  for (const end = performance.now() + withinMs; ; await sleep(10)) {
    const value = await read();
    if (value !== undefined && value !== false) return value;
    if (performance.now() > end) throw new Error(`expected it within ${withinMs} ms`);
  }
}

function readHead(text: string): Pick<EventStream, "status" | "headers"> {
  const [line = "", ...fields] = text.slice(0, text.indexOf("\r\n\r\n")).split("\r\n");
  const pairs = fields.map((field) => [field.slice(0, field.indexOf(":")).toLowerCase(), field] as const);
  const headers = new Map(pairs.map(([name, field]) => [name, field.slice(name.length + 1).trim()]));
  return { status: Number(line.split(" ")[1]), headers };
}

/** What whole chunks hold, as UTF-8. */
function unchunk(latin1: string): string {
  const parts: string[] = [];
  for (let at = 0; ; ) {
    const lineEnd = latin1.indexOf("\r\n", at);
    const size = Number.parseInt(latin1.slice(at, lineEnd), 16);
    if (lineEnd === -1 || !(size > 0) || latin1.length < lineEnd + 2 + size) break;
    parts.push(latin1.slice(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
  }
  return Buffer.from(parts.join(""), "latin1").toString("utf8");
}

function readEvents(text: string): readonly StreamEvent[] {
  return text
    .split("\n\n")
    .slice(0, -1)
    .filter((block) => !block.startsWith(":"))
    .map((block) => {
      const [event = "", data = ""] = block.split("\n");
      return { event: event.replace("event: ", ""), data: data.replace("data: ", "") };
    });
}
