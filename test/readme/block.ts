/**
 * A fenced block of Markdown whose info string says what it is for:
 * `run`: commands; `start`: commands of which the last keeps running; `client`: the configuration of an MCP client.
 */
export interface Block {
  readonly use: "run" | "start" | "client";
  readonly text: string;
  /** The block marked `shown` right after it: what the commands print. */
  readonly shown: string | null;
}

const fence = /^```(\w+) (run|start|client|shown)\n(.*?)^```$/gms;

/** The marked blocks of a document, in their order. Throws a SyntaxError for output that follows no command. */
export function markedBlocks(markdown: string): readonly Block[] {
  const blocks: Block[] = [];
  for (const [, , use, text = ""] of markdown.matchAll(fence)) {
    if (use !== "shown") {
      blocks.push({ use: use as Block["use"], text, shown: null });
      continue;
    }
    const last = blocks.pop();
    if (last?.use !== "run" || last.shown !== null) throw new SyntaxError(`expected commands before \`${text}\``);
    blocks.push({ ...last, shown: text });
  }
  return blocks;
}
