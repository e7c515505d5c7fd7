import type { SourceTree } from "./source-tree.ts";

const opening = /^\s*(?:\/\*\*|\*) ?(What|Whether|Where|How|Of|Who|Whoever|Hears|Which|When|Why)\b/;

/** A doc comment says what a thing does or promises: no line that opens one begins with a question word. */
export function questionFaults(tree: SourceTree): readonly string[] {
  return [...tree].flatMap(([path, source]) =>
    source.split("\n").flatMap((line, at, lines) => {
      const isFirst = line.includes("/**") || lines[at - 1]?.trim() === "/**";
      const word = isFirst ? opening.exec(line)?.[1] : undefined;
      return word === undefined ? [] : [`${path}:${at + 1}: a doc comment opens with \`${word}\``];
    }),
  );
}

const ownWords = /\b(?:most|longest|deepest|largest|tell|tells|told)[A-Z][A-Za-z]*\b/g;

/** Limits are `maxX`; what is published, rendered or reported is called so. */
export function nameFaults(tree: SourceTree): readonly string[] {
  return [...tree].flatMap(([path, source]) => {
    const code = source.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "").replace(/"[^"\n]*"|`[^`]*`/g, "");
    return [...new Set(code.match(ownWords) ?? [])].map((name) => `${path}: is called \`${name}\``);
  });
}

const exported =
  /^export (?:default )?(?:declare )?(?:abstract )?(?:async )?(?:const enum|const|let|class|interface|type|function\*?|enum) ([A-Za-z_$][\w$]*)/gm;

/** One name, one meaning: no two files export the same name. */
export function doubleFaults(tree: SourceTree): readonly string[] {
  const filesByName = new Map<string, string[]>();
  for (const [path, source] of tree) {
    for (const [, name = ""] of source.matchAll(exported)) {
      filesByName.set(name, [...(filesByName.get(name) ?? []), path]);
    }
  }
  return [...filesByName]
    .filter(([, files]) => new Set(files).size > 1)
    .map(([name, files]) => `\`${name}\` is exported by ${files.join(" and ")}`);
}
