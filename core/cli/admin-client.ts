import { Option } from "commander";
import { GatewayError } from "../kernel/error.ts";
import type { JsonObject } from "../kernel/json.ts";
import { escapeHidden } from "../kernel/visible-text.ts";

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
 * is no key, UPSTREAM_UNAVAILABLE where nobody answers, and the gateway's own words for any other answer, with its status
 * as `data.status`. Follows no redirect: the key is for this address alone.
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
  throw new GatewayError("INVALID_REQUEST", `the gateway answered ${status}: ${detailOf(body)}`, { data: { status } });
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
    throw new GatewayError("UPSTREAM_UNAVAILABLE", `no gateway answers at \`${url}\`; is \`--admin\` right?`, {
      cause,
    });
  }
}

/** The `detail` of a problem+json answer; its whole text where it is something else. It may quote what agents said. */
function detailOf(body: Buffer): string {
  const text = body.toString("utf8", 0, 1_024);
  try {
    const { detail } = JSON.parse(text) as { readonly detail?: unknown };
    return escapeHidden(typeof detail === "string" ? detail : text);
  } catch {
    return escapeHidden(text);
  }
}
