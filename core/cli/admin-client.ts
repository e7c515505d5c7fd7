import { userInfo } from "node:os";
import { InvalidArgumentError, Option } from "commander";
import { errorTable, GatewayError } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import { escapeHidden } from "../action/visible-text.ts";

/** Where a command finds a running gateway. */
export interface AdminOptions {
  readonly admin: string;
}

const deadlineMs = 60_000;

/** `--admin <url>`. */
export function adminOption(): Option {
  return new Option("--admin <url>", "admin port of the gateway; the key is read from GATEWAY_API_KEY")
    .env("GATEWAY_ADMIN_URL")
    .default("http://127.0.0.1:8081");
}

/**
 * Asks the admin port, with the key from GATEWAY_API_KEY, and returns the body of a 200 or 202. Throws KEY_MISSING where there
 * is no key, GATEWAY_UNREACHABLE where nobody answers, and the gateway's own words for any other answer, with its status
 * and code as `data.status` and `data.code`. Follows no redirect: the key is for this address alone.
 */
export async function askAdmin(
  { admin }: AdminOptions,
  path: string,
  method: "GET" | "POST" | "DELETE" = "GET",
  message?: JsonObject,
): Promise<Buffer> {
  const key = process.env.GATEWAY_API_KEY;
  if (key === undefined || key === "") throw new GatewayError("KEY_MISSING", "set GATEWAY_API_KEY to an API key");
  const url = `${admin.replace(/\/$/, "")}${path}`;
  const content = message === undefined ? {} : { "content-type": "application/json" };
  const { status, body } = await reach(url, {
    method,
    headers: { "x-api-key": key, ...content },
    ...(message === undefined ? {} : { body: JSON.stringify(message) }),
  });
  if (status === 200 || status === 202) return body;
  const { detail, code } = readProblem(body);
  throw new GatewayError("INVALID_REQUEST", `the gateway answered ${status}: ${detail}`, { data: { status, code } });
}

/** What the admin port answers, read as JSON. Throws as `askAdmin` does, and UPSTREAM_INVALID for what is none. */
export async function askJson<T>(
  options: AdminOptions,
  path: string,
  method: "GET" | "POST" | "DELETE" = "GET",
  message?: JsonObject,
): Promise<T> {
  const body = await askAdmin(options, path, method, message);
  try {
    return JSON.parse(body.toString("utf8")) as T;
  } catch (cause) {
    throw new GatewayError("UPSTREAM_INVALID", `expected JSON at \`${path}\`; is \`--admin\` right?`, { cause });
  }
}

async function reach(url: string, request: RequestInit): Promise<{ status: number; body: Buffer }> {
  try {
    const signal = AbortSignal.timeout(deadlineMs);
    const response = await fetch(url, { ...request, redirect: "error", signal });
    return { status: response.status, body: Buffer.from(await response.arrayBuffer()) };
  } catch (cause) {
    throw new GatewayError("GATEWAY_UNREACHABLE", `no gateway answers at \`${url}\`; is \`--admin\` right?`, {
      cause,
    });
  }
}

/** What a problem+json answer says; its whole text where it is something else. It may quote what agents said. */
function readProblem(body: Buffer): { readonly detail: string; readonly code?: string } {
  const text = body.toString("utf8", 0, 1_024);
  try {
    const { detail, code } = JSON.parse(body.toString("utf8")) as Readonly<Record<string, unknown>>;
    const named = typeof code === "string" && Object.hasOwn(errorTable, code) ? { code } : {};
    return { detail: escapeHidden(typeof detail === "string" ? detail.slice(0, 1_024) : text), ...named };
  } catch {
    return { detail: escapeHidden(text) };
  }
}

const maxText = 1_024;

/** Who runs this command, as far as the machine knows. */
export function currentUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `user ${process.getuid?.() ?? "unknown"}`; // a container's user needs no name
  }
}

/** An option's text that goes into a record. */
export function parseText(text: string): string {
  if (text.length > 0 && text.length <= maxText && text.isWellFormed()) return text;
  throw new InvalidArgumentError(`expected 1 to ${maxText} characters`);
}

/** A session's id as an argument. */
export function parseSessionId(text: string): string {
  if (/^[A-Za-z0-9_-]{1,256}$/.test(text)) return text;
  throw new InvalidArgumentError("expected a session's id, like `session-v1-…`");
}
