import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix, relative } from "node:path";
import { fileURLToPath } from "node:url";

/** Files by their path from the repository's root, with `/`. What the rules of this folder are functions of. */
export type SourceTree = ReadonlyMap<string, string>;

/** Where `package.json` lies, from wherever this was compiled to. */
export const repositoryRoot: string = findRoot(dirname(fileURLToPath(import.meta.url)));

function findRoot(folder: string): string {
  if (existsSync(join(folder, "package.json"))) return folder;
  if (dirname(folder) === folder) throw new Error("expected a folder with package.json above this file, found none");
  return findRoot(dirname(folder));
}

/** The files below `folders` whose names end in one of `endings`, in the order of their paths; none of installed packages. */
export function readSourceTree(folders: readonly string[], endings: readonly string[]): SourceTree {
  const paths = folders
    .map((folder) => join(repositoryRoot, folder))
    .filter((folder) => existsSync(folder))
    .flatMap((folder) => filesBelow(folder))
    .filter((path) => endings.some((ending) => path.endsWith(ending)));
  const files = paths.sort().map((path) => [relative(repositoryRoot, path), readFileSync(path, "utf8")] as const);
  return new Map(files.map(([path, source]) => [path.split("\\").join("/"), source]));
}

function filesBelow(folder: string): readonly string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === "node_modules" ? [] : filesBelow(path);
    return entry.isFile() ? [path] : [];
  });
}

/** A module that another one asks for: its name as written, and its path in the tree where it is relative. */
export interface Import {
  readonly name: string;
  readonly path: string | undefined;
  /** The names it brings in that exist at run time; none for `import type`. */
  readonly values: readonly string[];
}

const statement = /^(?:import|export)\b([^"'`;]*?)\bfrom\s*["']([^"'\n]+)["']/gm;
const sideEffect = /^import\s*["']([^"'\n]+)["']/gm;
const call = /\bimport\s*\(\s*(?:["']([^"'\n]+)["']\s*\))?/g;

/** What a module imports, re-exports or asks for in an expression. An expression that computes the name has none. */
export function importsOf(path: string, source: string): readonly Import[] {
  const found = (name: string, values: readonly string[]): Import => ({
    name,
    path: name.startsWith(".") ? posix.join(posix.dirname(path), name) : undefined,
    values,
  });
  return [
    ...[...source.matchAll(statement)].map(([, clause = "", name = ""]) => found(name, valuesOf(clause))),
    ...[...source.matchAll(sideEffect)].map(([, name = ""]) => found(name, [])),
    ...[...source.matchAll(call)].map(([, name = "(computed)"]) => found(name, [])),
  ];
}

function valuesOf(clause: string): readonly string[] {
  if (/^\s*type\b/.test(clause)) return [];
  const names = clause.replace(/[{}*]/g, ",").split(",");
  return names
    .map((name) => name.trim())
    .filter((name) => name !== "" && !name.startsWith("type "))
    .map(
      (name) =>
        name
          .split(/\bas\b/)
          .at(-1)
          ?.trim() ?? name,
    );
}
