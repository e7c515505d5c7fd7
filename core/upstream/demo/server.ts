import { appendFileSync } from "node:fs";
import { type CallToolResult, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const maxText = 20_000;
const maxNotes = 1_000;

/** Notes in memory, a few to start with. */
export class NoteBook {
  readonly #notes: Map<string, string> = new Map([
    ["welcome", "This note is kept by the demo upstream. Reading it is allowed by the baseline policy."],
    ["shopping", "Oats, apples, coffee."],
    ["meeting", "Tuesday 10:00: which actions may our agents take without asking?"],
  ]);

  titles(): readonly string[] {
    return [...this.#notes.keys()].sort();
  }

  read(title: string): string | undefined {
    return this.#notes.get(title);
  }

  /** Returns why the note was not kept, or undefined. */
  write(title: string, text: string): string | undefined {
    if (text.length > maxText) return `expected at most ${maxText} characters, got ${text.length}`;
    if (!this.#notes.has(title) && this.#notes.size >= maxNotes) return `expected at most ${maxNotes} notes`;
    this.#notes.set(title, text);
    return undefined;
  }

  /** Returns whether there was such a note. */
  delete(title: string): boolean {
    return this.#notes.delete(title);
  }
}

const notes = new NoteBook();
const title = z.string().min(1).max(100).describe("The note's title");

serveStdio(() => {
  const server = new McpServer({ name: "demo-notes", version: "1.0.0" });
  server.registerTool(
    "list_notes",
    {
      description: "Lists the titles of all notes.",
      inputSchema: z.object({}),
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
    () => logged("list_notes", {}, text(notes.titles().join("\n"))),
  );
  server.registerTool(
    "read_note",
    {
      description: "Reads one note.",
      inputSchema: z.object({ title }),
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
    (args) => logged("read_note", args, answer(notes.read(args.title), `there is no note \`${args.title}\``)),
  );
  server.registerTool(
    "write_note",
    {
      description: "Writes a note, in place of one with the same title.",
      inputSchema: z.object({ title, text: z.string().max(20_000).describe("What to write") }),
      annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    },
    (args) => {
      const refusal = notes.write(args.title, args.text);
      return logged("write_note", args, refusal === undefined ? text(`wrote \`${args.title}\``) : failure(refusal));
    },
  );
  server.registerTool(
    "delete_note",
    {
      description: "Deletes a note for good.",
      inputSchema: z.object({ title }),
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    },
    (args) => {
      const deleted = notes.delete(args.title) ? `deleted \`${args.title}\`` : undefined;
      return logged("delete_note", args, answer(deleted, `there is no note \`${args.title}\``));
    },
  );
  return server;
});

/** The upstream's own book of what reached it, so that a test can see what did not. */
function logged(tool: string, args: object, result: CallToolResult): CallToolResult {
  const path = process.env.DEMO_LOG;
  if (path !== undefined) appendFileSync(path, `${JSON.stringify({ tool, arguments: args })}\n`);
  return result;
}

function answer(found: string | undefined, missing: string): CallToolResult {
  return found === undefined ? failure(missing) : text(found);
}

function text(value: string): CallToolResult {
  return { content: [{ type: "text", text: value }] };
}

function failure(reason: string): CallToolResult {
  return { content: [{ type: "text", text: reason }], isError: true };
}
