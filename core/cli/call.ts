import { type ErrorCode, errorTable, GatewayError } from "../action/error.ts";
import { asciiJson, isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import { escapeHidden } from "../action/visible-text.ts";
import { identity } from "../compose/identity.ts";
import { refusalMetaKey } from "../http/refusal.ts";
import { plainUrl, readBounded, requireKey } from "./gateway-port.ts";
import { print, say } from "./print.ts";

interface CallOptions {
  readonly url: string;
  readonly args?: JsonObject;
  /** A label. */
  readonly session?: string;
  readonly json?: true;
}

/** The outcome of a call, as `--json` prints it. */
interface Outcome {
  /** `failed`: the tool ran and says that it failed. `withheld`: it ran, and policy keeps its answer. */
  readonly outcome: "answered" | "failed" | "held" | "blocked" | "withheld";
  readonly result: JsonObject;
  /** The gateway's own words about a refusal: code, decision, rules, approval. */
  readonly refusal: JsonObject | null;
  /** Commands to type next. */
  readonly next: readonly string[];
}

/** The time in which a call may wait for its review, and then for its answer. */
const timeoutMs = 15 * 60_000;
const maxAnswerBytes = 64 * 1024 * 1024;

/**
 * `gateway call`: calls a tool through the gateway, as an agent does, and prints its answer, or who holds or blocks it and the
 * next command. Ends with 1 for whatever is no answer of the tool.
 */
export async function callTool(tool: string, { url, args = {}, session, json }: CallOptions): Promise<void> {
  const answer = await send(plainUrl(url), tool, args, session);
  const outcome = outcomeOf(answer);
  if (outcome.outcome !== "answered") process.exitCode = 1;
  if (json) return print(asciiJson(outcome));
  const lines = textOf(outcome.result).split("\n").map(escapeHidden);
  if (outcome.outcome === "answered") return print(lines.join("\n"));
  for (const line of lines) say(line);
  for (const command of outcome.next) say(`next: ${command}`);
}

async function send(url: string, tool: string, args: JsonObject, session: string | undefined): Promise<JsonObject> {
  const request = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: tool, arguments: args } };
  const response = await fetch(`${url}/mcp`, {
    method: "POST",
    headers: {
      accept: "application/json",
      "content-type": "application/json",
      "user-agent": `gateway-call/${identity.version}`,
      "x-api-key": requireKey(),
      ...(session === undefined ? {} : { "x-gateway-session-id": session }),
    },
    body: JSON.stringify(request),
    redirect: "error",
    signal: AbortSignal.timeout(timeoutMs),
  }).catch((cause: unknown) => {
    throw new GatewayError("GATEWAY_UNREACHABLE", `no answer from \`${url}\`; start the gateway, or check \`--url\``, {
      cause,
    });
  });
  const answer = parseAnswer(await readBounded(response.body ?? [], maxAnswerBytes, "the gateway's answer"));
  if (isJsonObject(answer?.result)) return answer.result;
  if (isJsonObject(answer?.error)) throw errorOf(answer.error, response.status);
  throw new GatewayError("UPSTREAM_INVALID", `expected an answer in JSON-RPC from \`${url}\`; check \`--url\``);
}

function parseAnswer(body: Buffer): JsonObject | undefined {
  try {
    const answer = JSON.parse(body.toString("utf8")) as Json;
    return isJsonObject(answer) ? answer : undefined;
  } catch {
    return undefined;
  }
}

/** The gateway's error, or the upstream's; what they quote is escaped. */
function errorOf({ message, data }: JsonObject, status: number): GatewayError {
  const code = isJsonObject(data) ? data.code : undefined;
  const text = escapeHidden(String(message ?? ""));
  if (typeof code !== "string" || !Object.hasOwn(errorTable, code)) return new GatewayError("UPSTREAM_INVALID", text);
  const known = code as ErrorCode;
  const row = errorTable[known];
  const detail = text === row.text ? undefined : text.replace(`${row.text}: `, "");
  return new GatewayError(known, detail, status === 200 ? {} : { data: { status } });
}

function outcomeOf(result: JsonObject): Outcome {
  const meta = isJsonObject(result._meta) ? result._meta[refusalMetaKey] : undefined;
  if (!isJsonObject(meta)) {
    return { outcome: result.isError === true ? "failed" : "answered", result, refusal: null, next: [] };
  }
  return { outcome: refusedBy(meta), result, refusal: meta, next: nextOf(meta) };
}

function refusedBy({ decision, executed }: JsonObject): Outcome["outcome"] {
  if (executed === true) return "withheld";
  return decision === "review" ? "held" : "blocked";
}

/** Ids are the gateway's: anything else would be typed into a shell. */
function nextOf({ approval, decision_id: decision }: JsonObject): readonly string[] {
  const id = isJsonObject(approval) && approval.state === "pending" ? approval.id : undefined;
  if (typeof id === "string" && /^apr_[0-9a-f]{32}$/.test(id)) return [`gateway approvals show ${id}`];
  if (typeof decision === "string" && /^[0-9a-f-]{36}$/.test(decision)) return [`gateway explain ${decision}`];
  return [];
}

/** The text of a result: its texts, a line for each part that is none, and its structured content where it has no parts. */
function textOf({ content, structuredContent }: JsonObject): string {
  const parts: readonly Json[] = Array.isArray(content) ? content : [];
  if (parts.length === 0) return structuredContent === undefined ? "" : JSON.stringify(structuredContent);
  return parts.map(partText).join("\n");
}

function partText(part: Json): string {
  if (!isJsonObject(part)) return "[not readable]";
  if (part.type === "text" && typeof part.text === "string") return part.text;
  return `[${String(part.type)}${typeof part.mimeType === "string" ? ` ${part.mimeType}` : ""}; --json prints it]`;
}
