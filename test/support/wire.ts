import { connect, type Socket } from "node:net";

/** What a peer sent on one connection, and how that ended. */
export interface Conversation {
  readonly bytes: Buffer;
  /** Whether the peer ended the connection; false where the deadline came first. */
  readonly closed: boolean;
  readonly elapsedMs: number;
}

export interface WireResponse {
  readonly status: number;
  /** Names in lower case; a header that comes twice is joined with a comma. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

export type HeaderList = readonly (readonly [name: string, value: string])[];

export interface WireRequest {
  readonly method?: string;
  /** What stands in the request line; `/` unless told. */
  readonly target?: string;
  /** Sent in this order and as often as they stand here, one byte a character, before those that are missing. */
  readonly headers?: HeaderList;
  readonly body?: string | Uint8Array;
}

const deadlineMs = 60_000;

/**
 * Opens a TCP connection to the port of `url`. Rejects when it is refused.
 * `allowHalfOpen`: keep our half open when the peer ends its own, as an honest client never would.
 */
export function dial(url: string, allowHalfOpen: boolean = false): Promise<Socket> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true, allowHalfOpen });
    socket.once("error", reject);
    socket.once("connect", () => {
      socket.off("error", reject);
      resolve(socket);
    });
  });
}

/** Collects what the peer says until it ends the connection, or until `forMs` have passed; then hangs up. */
export function listenTo(socket: Socket, forMs: number = deadlineMs): Promise<Conversation> {
  const start = performance.now();
  const chunks: Buffer[] = [];
  return new Promise((resolve) => {
    const finish = (closed: boolean): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve({ bytes: Buffer.concat(chunks), closed, elapsedMs: performance.now() - start });
    };
    const timer = setTimeout(() => finish(false), forMs);
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    socket.once("end", () => finish(true));
    // A reset is an end too: what was said before it counts.
    socket.once("error", () => finish(true));
    socket.once("close", () => finish(true));
  });
}

/** Sends these very bytes and returns the whole conversation. */
export async function sendBytes(
  url: string,
  bytes: string | Uint8Array,
  forMs: number = deadlineMs,
): Promise<Conversation> {
  const socket = await dial(url);
  const conversation = listenTo(socket, forMs);
  socket.write(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes);
  return conversation;
}

/** Sends one request on a connection of its own and returns its one response. Throws unless there is exactly one. */
export async function send(url: string, request: WireRequest): Promise<WireResponse> {
  const { bytes, closed } = await sendBytes(url, encodeRequest(url, request));
  const responses = readResponses(bytes);
  const [response] = responses;
  if (response === undefined || responses.length > 1 || !closed) {
    throw new Error(`expected one response and an end, got ${responses.length} in \`${bytes.toString("latin1")}\``);
  }
  return response;
}

/** The bytes of a request. `host`, `connection: close` and the length of the body are added where they are not given. */
export function encodeRequest(url: string, request: WireRequest): Buffer {
  const body = Buffer.from(request.body ?? "");
  const given = request.headers ?? [];
  const missing = ([name]: readonly [string, string]): boolean =>
    given.every(([other]) => other.toLowerCase() !== name);
  const framing: [string, string][] =
    body.length === 0 || given.some(([name]) => name.toLowerCase() === "transfer-encoding")
      ? []
      : [["content-length", String(body.length)]];
  const added: HeaderList = [["host", new URL(url).host], ["connection", "close"], ...framing];
  const lines = [...given, ...added.filter(missing)].map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `${request.method ?? "GET"} ${request.target ?? "/"} HTTP/1.1\r\n${lines.join("")}\r\n`;
  return Buffer.concat([Buffer.from(head, "latin1"), body]);
}

/** The complete responses in what a peer said, whole bodies only. */
export function readResponses(bytes: Buffer): readonly WireResponse[] {
  const responses: WireResponse[] = [];
  let rest = bytes;
  for (;;) {
    const end = rest.indexOf("\r\n\r\n");
    if (end === -1) return responses;
    const [line = "", ...fields] = rest.subarray(0, end).toString("latin1").split("\r\n");
    const headers = readFields(fields);
    const content = rest.subarray(end + 4);
    const { body, length } = readBody(headers, content);
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(line)?.[1]);
    if (status >= 200) responses.push({ status, headers, body });
    rest = content.subarray(length);
  }
}

function readFields(fields: readonly string[]): ReadonlyMap<string, string> {
  const headers = new Map<string, string>();
  for (const field of fields) {
    const colon = field.indexOf(":");
    const name = field.slice(0, colon).toLowerCase();
    const value = field.slice(colon + 1).trim();
    headers.set(name, headers.has(name) ? `${headers.get(name)}, ${value}` : value);
  }
  return headers;
}

function readBody(headers: ReadonlyMap<string, string>, content: Buffer): { body: string; length: number } {
  if (headers.get("transfer-encoding") !== "chunked") {
    const length = Number(headers.get("content-length") ?? 0);
    return { body: content.subarray(0, length).toString("utf8"), length };
  }
  const parts: Buffer[] = [];
  let at = 0;
  for (;;) {
    const lineEnd = content.indexOf("\r\n", at);
    const size = Number.parseInt(content.subarray(at, lineEnd).toString("latin1"), 16);
    if (lineEnd === -1 || !(size > 0)) return { body: Buffer.concat(parts).toString("utf8"), length: lineEnd + 4 };
    parts.push(content.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
  }
}
