import { createRequire } from "node:module";
import { Language, type Node, Parser } from "web-tree-sitter";

/** A simple command of a syntax tree: its words with the quotes undone, null for one that is computed. */
export interface TreeCommand {
  readonly words: readonly (string | null)[];
  /** The files that it writes by a redirect. */
  readonly writes: readonly string[];
}

/** Returns the commands that tree-sitter-bash finds in a line; null where it finds an error. */
export type TreeReader = (line: string) => readonly TreeCommand[] | null;

/** Loads a parser of its own, which no other code has touched. */
export async function loadTreeReader(): Promise<TreeReader> {
  await Parser.init();
  const path = createRequire(import.meta.url).resolve("tree-sitter-bash/tree-sitter-bash.wasm");
  const parser = new Parser().setLanguage(await Language.load(path));
  return (line) => {
    const tree = parser.parse(line);
    if (tree === null) return null;
    const commands = tree.rootNode.hasError ? null : commandsIn(tree.rootNode);
    tree.delete();
    return commands;
  };
}

function commandsIn(root: Node): readonly TreeCommand[] {
  return root.descendantsOfType("command").flatMap((node) => {
    const name = node?.childForFieldName("name")?.child(0);
    if (node === null || name === null || name === undefined) return [];
    const targets = redirectsOf(node).map((redirect) => redirect.childrenForFieldName("destination"));
    // Words behind the target of a redirect are parsed as further targets.
    const words = [name, ...node.childrenForFieldName("argument"), ...targets.flatMap(([, ...rest]) => rest)];
    return [{ words: words.map(textOf), writes: writesOf(node) }];
  });
}

const sequences: ReadonlySet<string | undefined> = new Set(["list", "pipeline", "negated_command"]);

function redirectsOf(command: Node): readonly Node[] {
  // A redirect of the last command is parsed as one of the whole sequence.
  let last = command;
  while (sequences.has(last.parent?.type) && last.parent?.lastNamedChild?.id === last.id) last = last.parent;
  const around = last.parent?.type === "redirected_statement" ? last.parent.children : [];
  return [...around, ...command.children].filter((node) => node?.type === "file_redirect") as readonly Node[];
}

function writesOf(command: Node): readonly string[] {
  return redirectsOf(command)
    .filter(({ text }) => /^[\d&]*>[>|]?(?!&)/.test(text))
    .flatMap((node) => textOf(node.childForFieldName("destination")) ?? [])
    .filter((text) => !/^\/dev\/(?:null|stdout|stderr)$/.test(text));
}

/** Returns the text of a word that no shell computes; quotes and escapes other than the plain ones count as computed. */
function textOf(word: Node | null): string | null {
  switch (word?.type) {
    case "word":
    case "number":
      return /[\\*?{}[\]~$`]/.test(word.text) ? null : word.text;
    case "raw_string":
      return word.text.slice(1, -1);
    case "string":
      return /[\\$`]/.test(word.text) ? null : word.text.slice(1, -1);
    case "concatenation": {
      const parts = word.children.map(textOf);
      return parts.includes(null) ? null : parts.join("");
    }
    default:
      return null;
  }
}
