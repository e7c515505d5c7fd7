import { type ErrorCode, errorTable, GatewayError } from "../action/error.ts";
import { escapeHidden } from "../action/visible-text.ts";
import type { AdminOperation } from "../operation/operation.ts";
import { plainUrl, requireKey } from "./gateway-port.ts";

/** The admin port that a command calls. */
export interface AdminOptions {
  readonly admin: string;
}

/** Values by the names of an operation's path parameters, query parameters and body members; undefined ones are left out. */
export type Values = Readonly<Record<string, unknown>>;

const defaultTimeoutMs = 60_000;
const maxQuoted = 1_024;

/**
 * Calls an operation of the admin port with the key from GATEWAY_API_KEY and returns the JSON of its answer. Throws
 * KEY_MISSING without a key, INVALID_PARAMS for an address that is no plain URL, GATEWAY_UNREACHABLE where nothing answers,
 * UPSTREAM_INVALID for an answer that is no JSON, and the gateway's own error for a refusal, its HTTP status in `data.status`.
 */
export async function callAdmin<T>(options: AdminOptions, operation: AdminOperation, values: Values = {}): Promise<T> {
  const body = await fetchBytes(options, operation, values);
  try {
    return JSON.parse(body.toString("utf8")) as T;
  } catch (cause) {
    throw new GatewayError("UPSTREAM_INVALID", `expected JSON from \`${nameOf(operation)}\`; check \`--admin\``, {
      cause,
    });
  }
}

/**
 * Calls an operation as `callAdmin` does and returns the bytes of its answer. Follows no redirect: the key is for this address only.
 * `timeoutMs`: within which the whole answer comes; a minute unless told.
 */
export async function fetchBytes(
  { admin }: AdminOptions,
  operation: AdminOperation,
  values: Values = {},
  timeoutMs?: number,
): Promise<Buffer> {
  const key = requireKey();
  const { path, body } = buildRequest(operation, values);
  const request: RequestInit = {
    method: operation.method,
    headers: { "x-api-key": key, ...(operation.method === "GET" ? {} : { "content-type": "application/json" }) },
    body,
  };
  const { status, content } = await send(`${plainUrl(admin, "--admin")}${path}`, request, undefined, timeoutMs);
  if (status === 200 || status === 202) return content;
  throw refusalOf(status, content);
}

/** The names of an operation's path parameters, in order. */
export function pathParameters({ path }: AdminOperation): readonly string[] {
  return Array.from(path.matchAll(/:(\w+)/g), ([, name = ""]) => name);
}

interface HttpRequest {
  readonly path: string;
  readonly body: string | null;
}

/** Puts each value where the operation declares it: in the path, the query or the body. Throws TypeError for any other. */
function buildRequest(operation: AdminOperation, values: Values): HttpRequest {
  const { path, query, repeated = [], body } = operation;
  const search = new URLSearchParams();
  const members: Record<string, unknown> = {};
  const inPath = pathParameters(operation);
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined || inPath.includes(name)) continue;
    if (query !== undefined && name in query.properties) {
      const items = Array.isArray(value) && repeated.includes(name) ? value : [value];
      for (const item of items) search.append(name, String(item));
    } else if (body !== undefined) members[name] = value;
    else throw new TypeError(`buildRequest: expected a parameter of ${nameOf(operation)}, got ${name}`);
  }
  // A colon belongs to the name of a session; the gateway takes no escapes in a path.
  const inSegment = (name: string): string => encodeURIComponent(String(values[name])).replaceAll("%3A", ":");
  const filled = path.replace(/:(\w+)/g, (_, name: string) => inSegment(name));
  return {
    path: search.size === 0 ? filled : `${filled}?${search}`,
    body: body === undefined ? null : JSON.stringify(members),
  };
}

function nameOf({ method, path }: AdminOperation): string {
  return `${method} ${path}`;
}

/**
 * Posts nothing but a key, and returns the JSON of the answer. Throws as `callAdmin` does. `option`: the option to check where
 * nothing answers.
 */
export async function postWithKey<T>(url: string, key: string, option: string): Promise<T> {
  const headers = { "x-api-key": key, "content-type": "application/json" };
  const { status, content } = await send(url, { method: "POST", headers }, option);
  if (status !== 200) throw refusalOf(status, content);
  try {
    return JSON.parse(content.toString("utf8")) as T;
  } catch (cause) {
    throw new GatewayError("UPSTREAM_INVALID", `expected JSON from \`${url}\`; check ${option}`, { cause });
  }
}

async function send(
  url: string,
  request: RequestInit,
  option = "`--admin`",
  timeoutMs = defaultTimeoutMs,
): Promise<{ readonly status: number; readonly content: Buffer }> {
  try {
    const response = await fetch(url, { ...request, redirect: "error", signal: AbortSignal.timeout(timeoutMs) });
    return { status: response.status, content: Buffer.from(await response.arrayBuffer()) };
  } catch (cause) {
    const fault =
      (cause as Error).name === "TimeoutError"
        ? `no whole answer from \`${url}\` within ${timeoutMs / 1_000} s; try again when it has less to do`
        : `no answer from \`${url}\`; start the gateway, or check ${option}`;
    throw new GatewayError("GATEWAY_UNREACHABLE", fault, { cause });
  }
}

/** The error that a refusal names; what the gateway quotes of agents is escaped. */
function refusalOf(status: number, content: Buffer): GatewayError {
  const { code, detail } = readProblem(content);
  if (code === undefined)
    return new GatewayError("INVALID_REQUEST", `unexpected answer ${status}: ${detail}`, { data: { status } });
  const { text } = errorTable[code];
  if (detail === text) return new GatewayError(code, undefined, { data: { status } });
  return new GatewayError(code, detail.startsWith(`${text}: `) ? detail.slice(text.length + 2) : detail, {
    data: { status },
  });
}

/** Reads problem+json; for anything else the text itself is the detail. */
function readProblem(content: Buffer): { readonly detail: string; readonly code?: ErrorCode } {
  const text = content.toString("utf8", 0, maxQuoted);
  try {
    const { detail, code } = JSON.parse(content.toString("utf8")) as Readonly<Record<string, unknown>>;
    const known = typeof code === "string" && Object.hasOwn(errorTable, code) ? { code: code as ErrorCode } : {};
    return { detail: escapeHidden(typeof detail === "string" ? detail.slice(0, maxQuoted) : text), ...known };
  } catch {
    return { detail: escapeHidden(text) };
  }
}

/** One page of a list of the admin port. */
export interface ListPage<T> {
  readonly items: readonly T[];
  /** The cursor of the next page; null after the last. */
  readonly next: string | null;
}

const maxPageSize = 500;
const maxPages = 10_000;

/**
 * The pages of a list, each fetched when it is wanted, with no more than `limit` items in all. Throws as `callAdmin` does,
 * and UPSTREAM_INVALID where an answer is no page, or the list has more than 10,000 pages.
 */
export async function* fetchPages<T, P extends ListPage<T> = ListPage<T>>(
  options: AdminOptions,
  operation: AdminOperation,
  values: Values = {},
  limit: number = Number.POSITIVE_INFINITY,
): AsyncGenerator<P> {
  let [left, cursor]: [number, string | undefined] = [limit, undefined];
  for (let count = 0; count < maxPages; count++) {
    const page: P = await callAdmin<P>(options, operation, { limit: Math.min(left, maxPageSize), ...values, cursor });
    if (!isPage(page))
      throw new GatewayError("UPSTREAM_INVALID", `expected a page of a list from \`${nameOf(operation)}\``);
    yield page;
    left -= page.items.length;
    if (page.next === null || left <= 0) return;
    cursor = page.next;
  }
  throw new GatewayError(
    "UPSTREAM_INVALID",
    `expected the list of \`${nameOf(operation)}\` to end within ${maxPages} pages`,
  );
}

/** The items of a list, fetched as `fetchPages` does. */
export async function* fetchItems<T>(...list: Parameters<typeof fetchPages<T>>): AsyncGenerator<T> {
  for await (const { items } of fetchPages<T>(...list)) yield* items;
}

/** Returns a list that comes in one page, because it is as long as the configuration. Throws as `fetchPages` does. */
export async function fetchWhole<T>(options: AdminOptions, operation: AdminOperation): Promise<readonly T[]> {
  const page = await callAdmin<ListPage<T>>(options, operation);
  if (isPage(page) && page.next === null) return page.items;
  throw new GatewayError("UPSTREAM_INVALID", `expected a whole list from \`${nameOf(operation)}\``);
}

function isPage(answer: unknown): boolean {
  const { items, next } = (answer ?? {}) as { readonly items?: unknown; readonly next?: unknown };
  return Array.isArray(items) && (next === null || (typeof next === "string" && next !== ""));
}
