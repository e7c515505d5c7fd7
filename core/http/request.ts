import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { setImmediate } from "node:timers/promises";
import { GatewayError } from "../action/error.ts";
import { JoinedBytes } from "../action/joined-bytes.ts";
import type { Json } from "../action/json.ts";
import type { Principal } from "../action/principal.ts";
import { type JsonData, parseJsonInTurns, parseStrictJson } from "../action/strict-json.ts";
import { isLoopback } from "../config/repetition.ts";
import type { BodyLimits } from "../operation/operation.ts";
import { turnsOf } from "../store/pace.ts";
import type { FairShare } from "./fair-share.ts";

const maxHeaders = 100;

/** Headers that may come once: with two copies, two readers could see two requests. */
const singular: ReadonlySet<string> = new Set([
  "anthropic-beta",
  "anthropic-version",
  "authorization",
  "content-encoding",
  "content-length",
  "content-type",
  "host",
  "last-event-id",
  "mcp-method",
  "mcp-name",
  "mcp-protocol-version",
  "mcp-session-id",
  "origin",
  "provider-version",
  "sec-websocket-key",
  "sec-websocket-version",
  "transfer-encoding",
  "x-api-key",
  "x-gateway-session-id",
  "x-gateway-ticket",
  "x-gateway-task",
  "x-goog-api-key",
]);

/**
 * Paths in their one canonical spelling: no empty or dotted segment but `.well-known` at the start, no escape, no fragment, no
 * absolute form.
 */
const canonicalUrl =
  /^\/(?:(?:\.well-known\/)?[A-Za-z0-9_-][A-Za-z0-9_.:-]*(?:\/[A-Za-z0-9_-][A-Za-z0-9_.:-]*)*)?(?:\?[\x21-\x7e]*)?$/;

/** Members of a query in which clients of some APIs put their key. */
const keyInQuery = /[?&](?:key|api_key)=/i;

const loopback: readonly string[] = ["localhost", "127.0.0.1", "[::1]"];
const hostShape = /^(\[[0-9a-f:.]{2,45}\]|[a-z0-9.-]{1,253})(?::[0-9]{1,5})?$/i;
const originShape = /^https?:\/\/(\[[0-9a-f:.]{2,45}\]|[a-z0-9.-]{1,253})(?::[0-9]{1,5})?$/i;

/**
 * Refuses, before anything else reads it, a request that two readers could understand differently, and one whose `Host` or
 * `Origin` may not reach the port: DNS rebinding and foreign web pages. Empty lists allow the loopback names only.
 */
export class RequestGuard {
  readonly #hosts: ReadonlySet<string>;
  readonly #origins: ReadonlySet<string>;

  constructor(allowedHosts: readonly string[], allowedOrigins: readonly string[]) {
    this.#hosts = new Set([...loopback, ...allowedHosts.map((host) => host.toLowerCase())]);
    this.#origins = new Set(allowedOrigins.map((origin) => origin.toLowerCase()));
  }

  /**
   * Throws HEADERS_TOO_LARGE, DUPLICATE_HEADER, HOST_FORBIDDEN, ORIGIN_FORBIDDEN or NOT_FOUND, and KEY_MISSING for a key in the
   * URL. A host or origin listed with a port allows that port only, one without allows every port. A request without `Origin`
   * does not come from a web page.
   */
  check({ rawHeaders, headers, url = "" }: IncomingMessage): void {
    const count = rawHeaders.length / 2;
    if (count > maxHeaders) {
      throw new GatewayError("HEADERS_TOO_LARGE", `expected at most ${maxHeaders} headers, got ${count}`);
    }
    const seen = new Set<string>();
    for (let index = 0; index < rawHeaders.length; index += 2) {
      const name = (rawHeaders[index] as string).toLowerCase();
      if (!singular.has(name)) continue;
      if (seen.has(name)) throw new GatewayError("DUPLICATE_HEADER", `expected one \`${name}\`, got more`);
      seen.add(name);
    }
    const host = headers.host?.toLowerCase() ?? "";
    const name = hostShape.exec(host)?.[1];
    if (name === undefined || !(this.#hosts.has(name) || this.#hosts.has(host))) {
      throw new GatewayError("HOST_FORBIDDEN", "expected a host listed in `listen.allowed_hosts`");
    }
    if (headers.origin !== undefined && !this.#allowsOrigin(headers.origin.toLowerCase())) {
      throw new GatewayError("ORIGIN_FORBIDDEN", "expected an origin listed in `listen.allowed_origins`");
    }
    if (!canonicalUrl.test(url) || url.includes("#")) {
      throw new GatewayError("NOT_FOUND", "expected a path in its canonical form");
    }
    if (keyInQuery.test(url)) {
      throw new GatewayError(
        "KEY_MISSING",
        "expected the key in a header, got one in the URL, which logs on the way would keep",
      );
    }
  }

  /**
   * Refuses, beyond `check`, what a web page that is not the gateway's own could send to change something. Throws
   * UNSUPPORTED_MEDIA_TYPE for anything but `application/json`, with a body or without: a page of another origin cannot name that
   * type. Throws ORIGIN_FORBIDDEN as `checkOwnPage` does.
   */
  checkChange(request: IncomingMessage): void {
    if (!jsonType.test(request.headers["content-type"] ?? "")) {
      throw new GatewayError(
        "UNSUPPORTED_MEDIA_TYPE",
        "expected `content-type: application/json`, also without a body",
      );
    }
    this.checkOwnPage(request);
  }

  /**
   * Refuses what a web page sends that is neither of the origin the request goes to nor of one that is listed, letter by letter.
   * Throws ORIGIN_FORBIDDEN. A request without `Origin` and `Sec-Fetch-Site` does not come from a web page.
   */
  checkOwnPage({ headers }: IncomingMessage): void {
    const { origin, host = "", "sec-fetch-site": site = "none" } = headers;
    const isListed = origin !== undefined && this.#origins.has(origin.toLowerCase());
    const isOwn = origin === undefined || /^https?:\/\/(.*)$/.exec(origin)?.[1] === host;
    const isFromOwnPage = site === "none" || site === "same-origin";
    if (!isListed && !(isOwn && isFromOwnPage)) {
      throw new GatewayError(
        "ORIGIN_FORBIDDEN",
        "expected the gateway's own origin, or one listed in `listen.allowed_origins` with its port",
      );
    }
  }

  /** Refuses what does not come from this machine under one of its own names. Throws HOST_FORBIDDEN. */
  checkOwnMachine({ headers, socket }: IncomingMessage): void {
    const name = hostShape.exec(headers.host?.toLowerCase() ?? "")?.[1] ?? "";
    const address = socket.remoteAddress?.replace(/^::ffff:/, "") ?? "";
    if (loopback.includes(name) && isLoopback(address)) return;
    throw new GatewayError("HOST_FORBIDDEN", "expected a request from this machine, to `localhost` or `127.0.0.1`");
  }

  #allowsOrigin(origin: string): boolean {
    if (this.#origins.has(origin)) return true;
    const name = originShape.exec(origin)?.[1];
    return name !== undefined && loopback.includes(name);
  }
}

/**
 * A header as one text; undefined where it is absent. Copies are joined: `RequestGuard` has refused second copies of
 * every header where that would change the meaning.
 */
export function headerText(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}

const jsonType = /^application\/json(?:\s*;\s*charset="?utf-8"?)?$/i;

/** Reads a request body as one strict JSON value. Rejects as `readJsonBytes` does, and with what `parseStrictJson` throws. */
export async function readJsonBody(request: IncomingMessage, limits: BodyLimits): Promise<Json> {
  return parseStrictJson(await readJsonBytes(request, limits.bytes, setImmediate), limits.json);
}

/** Bytes of a body after which others have their turn. */
const readAtOnce = 65_536;

/** Bytes of a body or a message from which on it is parsed, and then judged, in turns of its own. */
export const largeBody = 8_192;

/**
 * Returns the milliseconds that the refusal of a request or message waits which exceeds a share, and what comes after it on its
 * connection: refusing thousands a second, or reading large ones to drop them, would take time from others.
 */
export function refusalDelayMs(bytes: number): number {
  return bytes >= largeBody ? 1_000 : 100;
}

/**
 * Reads a body of the gateway port as one strict JSON value, at the expense of its principal. A large one is paid for by its
 * bytes, decoded and parsed in turns of their own, and the promise settles in another. Rejects as `readJsonBody` does, and with
 * RATE_LIMITED before the body is decoded, where the principal has no processor time left or too many of its bytes wait.
 */
export async function readGatewayBody(
  request: IncomingMessage,
  limits: BodyLimits,
  share: FairShare,
  principal: Principal,
): Promise<Json> {
  // What is refused by its length alone is never in memory as a whole.
  const declared = Number(request.headers["content-length"] ?? 0);
  if (declared >= largeBody) share.admitBytes(principal, declared);
  const bytes = await readJsonBytes(request, limits.bytes, () => share.pause(principal, "new"));
  if (bytes.length < largeBody) {
    share.admitSmall(principal);
    return parseStrictJson(bytes, limits.json);
  }
  await share.admitLarge(principal, bytes.length);
  // Now rather than when it is written: others of its key may come before that.
  share.spendStored(principal, bytes.length);
  const turns = turnsOf(() => share.pause(principal));
  const value = await parseJsonInTurns(bytes, limits.json, turns);
  await turns.next();
  return value;
}

/**
 * Reads the bytes of a JSON body, unparsed. Only `application/json` without content coding is accepted: a foreign web page
 * can send only forms and plain text. Rejects with UNSUPPORTED_MEDIA_TYPE, BODY_TOO_LARGE, and INVALID_REQUEST where the
 * body broke off. The connection stays open after a body that is too large: its sender still has to read the response.
 * Little of a large one is read between two pauses: a turn of the event loop reads two megabytes of each connection otherwise.
 */
async function readJsonBytes(
  request: IncomingMessage,
  maxBytes: number,
  pause: () => Promise<void>,
): Promise<JsonData> {
  const { "content-type": type, "content-encoding": coding, "content-length": declared } = request.headers;
  if (!jsonType.test(type ?? "")) {
    throw new GatewayError("UNSUPPORTED_MEDIA_TYPE", "expected `content-type: application/json`");
  }
  if (coding !== undefined && coding !== "identity") {
    throw new GatewayError("UNSUPPORTED_MEDIA_TYPE", "expected a body without content-encoding");
  }
  if (Number(declared ?? 0) > maxBytes) throw tooLarge(maxBytes);
  if (request.destroyed) throw brokenOff(request.errored);
  // By its events: an iterator over the body makes some thirty objects a request.
  return new Promise((resolve, reject) => {
    const length = Number(declared ?? 0);
    let first: Buffer | undefined;
    let joined: JoinedBytes | undefined;
    let size = 0;
    let pausedAt = 0;
    const rest = (): void => {
      pausedAt = size;
      request.pause();
      void pause().then(() => request.resume());
    };
    const take = (chunk: Buffer): void => {
      size += chunk.length;
      if (size > maxBytes) {
        finish();
        return;
      }
      if (size - pausedAt >= readAtOnce) rest();
      if (first === undefined) first = chunk;
      else joined = (joined ?? new JoinedBytes(length).add(first)).add(chunk);
    };
    const finish = (cause?: Error): void => {
      request.off("data", take).off("end", finish).off("error", finish).off("close", finish);
      if (size > maxBytes) {
        request.pause();
        reject(tooLarge(maxBytes));
      } else if (request.readableEnded) resolve(joined ?? first ?? Buffer.alloc(0));
      else reject(brokenOff(cause));
    };
    request.on("data", take).on("end", finish).on("error", finish).on("close", finish);
  });
}

function brokenOff(cause: unknown): GatewayError {
  return new GatewayError("INVALID_REQUEST", "the body broke off", { cause });
}

function tooLarge(maxBytes: number): GatewayError {
  return new GatewayError("BODY_TOO_LARGE", `expected at most ${maxBytes} bytes`);
}
