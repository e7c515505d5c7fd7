import { GatewayError } from "../action/error.ts";
import { isJsonObject, type Json } from "../action/json.ts";
import { parseStrictJson } from "../action/strict-json.ts";
import { artifactError } from "./file-name.ts";
import type { ExchangeFaults, HttpReply } from "./http-exchange.ts";

/** The errors of an exchange with a registry. */
export const registryFaults: ExchangeFaults = {
  unreachable: (text, cause) => new GatewayError("REGISTRY_UNREACHABLE", text, { cause }),
  tooLarge: (_, maxBytes) => artifactError(`expected at most ${maxBytes} bytes from the registry, got more`),
};

/** Bytes of an answer that is no content: of an error, or of a token service. */
export const maxAnswer = 65_536;
const answerBounds = { depth: 16, nodes: 4_096, stringLength: maxAnswer, reader: "tolerant" } as const;
const errorShape = /^[A-Z_]{1,64}$/;

/** Returns the error for a reply of failure; `refuse` makes those that a later try would meet again. */
export function statusFault(
  { status, body }: Pick<HttpReply, "status" | "body">,
  { host }: URL,
  hasCredential: boolean,
  refuse: (fault: string) => GatewayError,
): GatewayError {
  if (status === 401 || status === 403) return accessFault(status, host, hasCredential, refuse);
  const code = errorCode(body);
  const said = `HTTP ${status}${code === undefined ? "" : ` ${code}`}`;
  if (status === 429 || status >= 500) return registryFaults.unreachable(`\`${host}\`: ${said}`);
  return refuse(status === 404 ? `it has no such artifact (${said})` : said);
}

function accessFault(
  status: number,
  host: string,
  hasCredential: boolean,
  refuse: (fault: string) => GatewayError,
): GatewayError {
  const advice = `\`docker login ${host}\`, or set GATEWAY_REGISTRY_USERNAME and GATEWAY_REGISTRY_PASSWORD`;
  const [expected, got] = hasCredential ? ["a credential that may do this", "another"] : ["a credential", "none"];
  return refuse(`expected ${expected}, got ${got} (HTTP ${status}); ${advice}`);
}

/** The code of the first error, as the distribution specification writes it. */
function errorCode(body: Buffer): string | undefined {
  const answer = parseAnswer(body);
  const [first] = isJsonObject(answer) && Array.isArray(answer.errors) ? (answer.errors as readonly Json[]) : [];
  const code = isJsonObject(first) ? first.code : undefined;
  return typeof code === "string" && errorShape.test(code) ? code : undefined;
}

/** Reads the JSON of an answer that is no content; null for anything else. */
export function parseAnswer(body: Buffer): Json {
  try {
    return parseStrictJson(body, answerBounds);
  } catch {
    return null;
  }
}
