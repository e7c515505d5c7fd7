import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { JsonObject } from "../../../core/action/json.ts";
import type { Answer } from "../../support/agent.ts";
import type { ToolResult } from "../../support/mcp-client.ts";
import { tool } from "./hostile-tool.ts";
import { catalogServer } from "./server-program.ts";
import { openWorld, type World } from "./world.ts";

export const rules: string = `rules:
  - { id: test.see, title: All may be seen, decision: allow, match: { phase: [list, output] } }
  - { id: test.free, title: Lists and publishing are allowed, decision: allow, match: { phase: input, tool: [tools/list, publish] } }
  - { id: test.secret, title: Secrets are blocked, decision: block, match: { phase: input, tool: secret }, message: no secrets }
  - { id: test.look, title: Notes are reviewed, decision: review, match: { phase: input, tool: "note*" } }
`;

/** What a call is told that waits. */
export const waiting: RegExp = /Approval (apr_[0-9a-f]{32}) is pending/;

/** A gateway that holds calls of `note` for review, before a server that answers with what reached it. */
export async function openHoldingWorld(approvals: string, more = ""): Promise<World> {
  const world = await openWorld({
    servers: (folder) => ({ notes: catalogServer(join(folder, "tools.json")) }),
    keys: { notes: "definitions: { pin: false }" },
    rules,
    more: `approvals: { ${approvals} }\nsessions: { review_flood: { reviews: 0 }, risk: { kill_at: 0 } }\n${more}`,
  });
  await publish(world, {});
  return world;
}

/** Has the server list `note` with `definition`. */
export async function publish(world: World, definition: JsonObject): Promise<void> {
  await writeFile(
    join(world.folder, "tools.json"),
    JSON.stringify([tool("note", definition), tool("publish"), tool("secret")]),
  );
}

export function textOf(result: ToolResult | Answer["result"]): string {
  return result?.content?.[0]?.text ?? "";
}

/** How many calls of `note` reached the server. */
export function notes(world: World): number {
  return world.calls("notes").filter(({ params }) => params?.name === "note").length;
}
