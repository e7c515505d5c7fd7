import { createRequire } from "node:module";
import { Language, type Node, Parser } from "web-tree-sitter";
import type { SyntaxCensus } from "./shell-syntax.ts";

/** Steps that a parse reports before it is given up. */
const maxSteps = 20_000;
const maxNodes = 20_000;

let parser: Parser | undefined;

/** Loads the grammar of the second parser; afterwards it is synchronous. */
export async function loadSecondOpinion(): Promise<void> {
  if (parser !== undefined) return;
  await Parser.init();
  const path = createRequire(import.meta.url).resolve("tree-sitter-bash/tree-sitter-bash.wasm");
  const language = await Language.load(path);
  parser = new Parser().setLanguage(language);
}

/** Counts what the second parser finds; null where it finds an error, gives up, or is not loaded. */
export function takeCensus(source: string): SyntaxCensus | null {
  if (parser === undefined) return null;
  let steps = 0;
  const progressCallback = (): boolean => ++steps > maxSteps;
  const tree = parser.parse(source, null, { progressCallback });
  if (tree === null) {
    parser.reset();
    return null;
  }
  try {
    return tree.rootNode.hasError ? null : countNodes(tree.rootNode);
  } finally {
    tree.delete();
  }
}

interface Count {
  names: string[];
  wordCount: number;
  redirectCount: number;
}

function countNodes(root: Node): SyntaxCensus | null {
  const count: Count = { names: [], wordCount: 0, redirectCount: 0 };
  const pending: Node[] = [root];
  for (let seen = 0; pending.length > 0; seen += 1) {
    const node = pending.pop();
    if (node === undefined || seen > maxNodes || node.isMissing) return null;
    countNode(node, count);
    for (const child of node.children.toReversed()) pending.push(child);
  }
  return count;
}

function countNode(node: Node, count: Count): void {
  switch (node.type) {
    case "command":
      countCommand(node, count);
      break;
    case "declaration_command":
    case "unset_command":
      count.names.push(node.child(0)?.text ?? "");
      break;
    case "test_command":
      // Arithmetic commands may carry the same name.
      if (node.child(0)?.text === "[" || node.child(0)?.text === "[[") count.names.push(node.child(0)?.text ?? "");
      break;
    case "file_redirect":
      count.redirectCount += 1;
      // Words after the target are parsed as further targets.
      count.wordCount += Math.max(0, node.childrenForFieldName("destination").length - 1);
      break;
    case "heredoc_redirect":
      count.redirectCount += 1;
      count.wordCount += node.childrenForFieldName("argument").length;
      break;
    case "herestring_redirect":
      count.redirectCount += 1;
      break;
  }
}

function countCommand(node: Node, count: Count): void {
  const args = node.childrenForFieldName("argument").map(({ text }) => text);
  const name = node.childForFieldName("name")?.text;
  if (name === undefined) return;
  if (name !== "time") {
    count.names.push(name);
    count.wordCount += args.length;
    return;
  }
  // A word of the grammar to the first parser.
  const flags = args.findIndex((text) => text !== "-p" && text !== "--");
  if (flags === -1) return;
  count.names.push(args[flags] ?? "");
  count.wordCount += args.length - flags - 1;
}

/** Returns true where both found the same programs, as many words and as many redirects. */
export function censusAgrees(first: SyntaxCensus, second: SyntaxCensus | null): boolean {
  return (
    second !== null &&
    first.wordCount === second.wordCount &&
    first.redirectCount === second.redirectCount &&
    first.names.length === second.names.length &&
    first.names.toSorted().every((name, at) => name === second.names.toSorted()[at])
  );
}
