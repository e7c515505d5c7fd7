import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliDecompress } from "node:zlib";
import type { Parser, TreeCursor } from "web-tree-sitter";
import { loadAnew, ParserInstance } from "../parser-instance.ts";
import type { SyntaxCensus } from "./shell-syntax.ts";

/** Steps that a parse reports before it is given up. */
const maxSteps = 2_000;
const maxNodes = 10_000;

const instance = new ParserInstance<Parser>(makeParser);

/** Loads the grammar of the second parser; afterwards it is synchronous. */
export async function loadSecondOpinion(): Promise<void> {
  await instance.load();
}

async function makeParser(): Promise<Parser> {
  const { Language, Parser } = loadAnew(
    vendored("web-tree-sitter/web-tree-sitter.cjs"),
  ) as typeof import("web-tree-sitter");
  const [wasmBinary, grammar] = await Promise.all([
    readCompressed("web-tree-sitter/web-tree-sitter.wasm"),
    readCompressed("tree-sitter-bash/tree-sitter-bash.wasm"),
  ]);
  await Parser.init({ wasmBinary });
  return new Parser().setLanguage(await Language.load(grammar));
}

async function readCompressed(path: string): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await promisify(brotliDecompress)(await readFile(vendored(`${path}.br`))));
}

/** Returns the path of a file that the build copies from a package. */
function vendored(path: string): string {
  return fileURLToPath(new URL(`../../../vendor/${path}`, import.meta.url));
}

/** Counts what the second parser finds; null where it finds an error, gives up, or is not loaded. */
export function takeCensus(source: string): SyntaxCensus | null {
  return instance.use(
    (parser) => censusOf(parser, source),
    () => false,
  );
}

function censusOf(parser: Parser, source: string): SyntaxCensus | null {
  let steps = 0;
  const progressCallback = (): boolean => ++steps > maxSteps;
  const tree = parser.parse(source, null, { progressCallback });
  if (tree === null) {
    parser.reset();
    return null;
  }
  const cursor = tree.rootNode.hasError ? null : tree.walk();
  try {
    return cursor === null ? null : countNodes(cursor);
  } finally {
    cursor?.delete();
    tree.delete();
  }
}

interface Count {
  readonly names: string[];
  wordCount: number;
  redirectCount: number;
}

/** A node whose children are being counted. */
interface OpenNode {
  readonly type: string;
  isFirst: boolean;
  name: string | undefined;
  argumentCount: number;
  /** The arguments of `time`, whose name stands before them. */
  readonly timed: string[];
}

/** Walks with a cursor: objects for all nodes would take ten times as long. */
function countNodes(cursor: TreeCursor): SyntaxCensus | null {
  const count: Count = { names: [], wordCount: 0, redirectCount: 0 };
  const open: OpenNode[] = [];
  for (let seen = 0; seen < maxNodes; seen += 1) {
    if (cursor.nodeIsMissing) return null;
    noteChild(open.at(-1), cursor, count);
    const type = cursor.nodeType;
    if (cursor.gotoFirstChild()) {
      open.push({ type, isFirst: true, name: undefined, argumentCount: 0, timed: [] });
      continue;
    }
    addLeaf(type, count);
    while (!cursor.gotoNextSibling()) {
      const done = open.pop();
      if (done === undefined) return count;
      addNode(done, count);
      cursor.gotoParent();
    }
  }
  return null;
}

/** Notes the node under the cursor at its parent. */
function noteChild(parent: OpenNode | undefined, cursor: TreeCursor, { names }: Count): void {
  if (parent === undefined) return;
  switch (parent.type) {
    case "command":
      noteWord(parent, cursor);
      break;
    case "file_redirect":
      if (cursor.currentFieldName === "destination") parent.argumentCount += 1;
      break;
    case "heredoc_redirect":
      if (cursor.currentFieldName === "argument") parent.argumentCount += 1;
      break;
    case "declaration_command":
    case "unset_command":
      if (parent.isFirst) names.push(cursor.nodeText);
      break;
    case "test_command": {
      // Arithmetic commands may carry the same name.
      const text = parent.isFirst ? cursor.nodeText : "";
      if (text === "[" || text === "[[") names.push(text);
      break;
    }
  }
  parent.isFirst = false;
}

function noteWord(command: OpenNode, cursor: TreeCursor): void {
  const field = cursor.currentFieldName;
  if (field === "name") command.name = cursor.nodeText;
  if (field !== "argument") return;
  command.argumentCount += 1;
  if (command.name === "time") command.timed.push(cursor.nodeText);
}

function addLeaf(type: string, count: Count): void {
  if (type === "file_redirect" || type === "heredoc_redirect" || type === "herestring_redirect")
    count.redirectCount += 1;
}

function addNode(node: OpenNode, count: Count): void {
  addLeaf(node.type, count);
  // Words after the target are parsed as further targets.
  if (node.type === "file_redirect") count.wordCount += Math.max(0, node.argumentCount - 1);
  if (node.type === "heredoc_redirect") count.wordCount += node.argumentCount;
  if (node.type === "command") addCommand(node, count);
}

function addCommand({ name, argumentCount, timed }: OpenNode, count: Count): void {
  if (name === undefined) return;
  if (name !== "time") {
    count.names.push(name);
    count.wordCount += argumentCount;
    return;
  }
  // A word of the grammar to the first parser.
  const flags = timed.findIndex((text) => text !== "-p" && text !== "--");
  if (flags === -1) return;
  count.names.push(timed[flags] ?? "");
  count.wordCount += timed.length - flags - 1;
}

/** Returns true where both found the same programs, as many words and as many redirects. */
export function censusAgrees(first: SyntaxCensus, second: SyntaxCensus | null): boolean {
  if (second === null || first.wordCount !== second.wordCount || first.redirectCount !== second.redirectCount)
    return false;
  const [names, others] = [first.names.toSorted(), second.names.toSorted()];
  return names.length === others.length && names.every((name, at) => name === others[at]);
}
