import { Option } from "commander";
import { GatewayError } from "../kernel/error.ts";
import type { JsonObject } from "../kernel/json.ts";

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
 * Asks the admin port, with the key from GATEWAY_API_KEY, and returns the body of a 200; a POST carries `order`.
 * Throws KEY_MISSING where there is no key, UPSTREAM_UNAVAILABLE where nobody answers, and the gateway's own words for any other answer. Follows no
 * redirect: the key is for this address alone.
 */
export async function askAdmin(
  { admin }: AdminOptions,
  path: string,
  method: "GET" | "POST" = "GET",
  order?: JsonObject,
): Promise<Buffer> {
  const key = process.env.GATEWAY_API_KEY;
  if (key === undefined || key === "") throw new GatewayError("KEY_MISSING", "set GATEWAY_API_KEY to an API key");
  const response = await reach(`${admin.replace(/\/$/, "")}${path}`, key, method, order);
  const body = Buffer.from(await response.arrayBuffer());
  if (response.status === 200) return body;
  throw new GatewayError("INVALID_REQUEST", `the gateway answered ${response.status}: ${detailOf(body)}`);
}

async function reach(url: string, key: string, method: string, order: JsonObject | undefined): Promise<Response> {
  const headers = { "x-api-key": key, ...(order === undefined ? {} : { "content-type": "application/json" }) };
  const body = order === undefined ? null : JSON.stringify(order);
  try {
    return await fetch(url, { method, headers, body, redirect: "error", signal: AbortSignal.timeout(deadlineMs) });
  } catch (cause) {
    throw new GatewayError("UPSTREAM_UNAVAILABLE", `no gateway answers at \`${url}\`; is \`--admin\` right?`, {
      cause,
    });
  }
}

/** The `detail` of a problem+json answer; its whole text where it is something else. */
function detailOf(body: Buffer): string {
  const text = body.toString("utf8", 0, 1_024);
  try {
    const { detail } = JSON.parse(text) as { readonly detail?: unknown };
    return typeof detail === "string" ? detail : text;
  } catch {
    return text;
  }
}
