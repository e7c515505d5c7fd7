import { GatewayError } from "../kernel/error.ts";
import { isJsonObject, type JsonObject } from "../kernel/json.ts";
import type { UpstreamConnection } from "./connection.ts";

const mostPages = 100;
const mostItems = 5_000;
const mostCharacters = 16 * 1024 * 1024;

/**
 * Reads a list to its last page. Rejects with UPSTREAM_INVALID beyond 100 pages, 5,000 items or 16 Mi characters, for a
 * cursor that repeats, and for a page that is no list; nothing is cut short.
 */
export async function readList(
  connection: UpstreamConnection,
  method: string,
  member: string,
): Promise<readonly JsonObject[]> {
  const items: JsonObject[] = [];
  const cursors: Set<string> = new Set();
  let characters = 0;
  for (let cursor: string | undefined, page = 1; ; page++) {
    const result = await readPage(connection, method, cursor);
    const listed = result[member];
    if (!Array.isArray(listed) || !listed.every(isJsonObject))
      throw invalid(`expected \`${member}\` to be a list of objects`);
    items.push(...listed);
    characters += JSON.stringify(listed).length;
    cursor = typeof result.nextCursor === "string" && result.nextCursor !== "" ? result.nextCursor : undefined;
    if (items.length > mostItems) throw invalid(`\`${method}\`: expected at most ${mostItems} items`);
    if (characters > mostCharacters) throw invalid(`\`${method}\`: expected at most ${mostCharacters} characters`);
    if (cursor === undefined) return items;
    if (page >= mostPages) throw invalid(`\`${method}\`: expected at most ${mostPages} pages`);
    if (cursors.has(cursor)) throw invalid(`\`${method}\`: the same cursor came twice`);
    cursors.add(cursor);
  }
}

async function readPage(
  connection: UpstreamConnection,
  method: string,
  cursor: string | undefined,
): Promise<JsonObject> {
  const response = await connection.request({ method, ...(cursor === undefined ? {} : { params: { cursor } }) });
  if ("result" in response) return response.result;
  throw invalid(`\`${method}\` was answered with error ${response.error.code}`);
}

function invalid(detail: string): GatewayError {
  return new GatewayError("UPSTREAM_INVALID", detail);
}
