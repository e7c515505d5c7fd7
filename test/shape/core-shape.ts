import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Node, SourceFile } from "typescript/unstable/ast";
import {
  isArrowFunction,
  isExportDeclaration,
  isExportKeyword,
  isFunctionExpression,
  isFunctionLikeDeclaration,
  isIdentifier,
  isNamedExports,
  isPropertyAssignment,
  isPropertyDeclaration,
  isVariableDeclaration,
  isVariableStatement,
} from "typescript/unstable/ast/is";
import { API } from "typescript/unstable/sync";
import { importsOf, repositoryRoot, type SourceTree } from "../check/source-tree.ts";

/** The number of measured values, their median and their 90th percentile. */
export interface Spread {
  readonly count: number;
  readonly p50: number;
  readonly p90: number;
}

/** An exported name and the files that define it. */
export interface SharedName {
  readonly name: string;
  readonly paths: readonly string[];
}

/**
 * Measures of the TypeScript files that git tracks below `core/`, those for AssemblyScript and `.d.ts` left out.
 * A function's lines are those from its first word to its last brace; its doc comment is not among them.
 */
export interface CoreShape {
  readonly files: number;
  readonly lines: number;
  readonly fileLines: Spread;
  readonly longest: { readonly path: string; readonly lines: number };
  /** Of declarations, methods, constructors and accessors, and of expressions that a name is given to. */
  readonly namedFunctionLines: Spread;
  /** Of these and of all that are anonymous. */
  readonly functionLines: Spread;
  /** Values and types alike; a name that a file passes on from another is not defined there. */
  readonly sharedNames: readonly SharedName[];
  /** Importers are files of `core/`, by any import or re-export, of types too. */
  readonly importedOnce: readonly string[];
  /** Entries of programs and of worker threads are among them. */
  readonly importedNever: readonly string[];
}

/** Reads the sources as they lie in the working tree. */
export function measureCore(): CoreShape {
  const tree = readTracked();
  const parsed = parseAll([...tree.keys()]);
  const lengths = [...tree].map(([path, text]) => ({ path, lines: text.replace(/\n$/, "").split("\n").length }));
  const functions = [...parsed.values()].flatMap(functionsOf);
  const importers = countImporters(tree);
  const importedBy = (count: number): readonly string[] =>
    [...tree.keys()].filter((path) => (importers.get(path) ?? 0) === count);
  return {
    files: tree.size,
    lines: lengths.reduce((total, { lines }) => total + lines, 0),
    fileLines: spreadOf(lengths.map(({ lines }) => lines)),
    longest: lengths.reduce((a, b) => (b.lines > a.lines ? b : a)),
    namedFunctionLines: spreadOf(functions.filter(({ isNamed }) => isNamed).map(({ lines }) => lines)),
    functionLines: spreadOf(functions.map(({ lines }) => lines)),
    sharedNames: findSharedNames(parsed),
    importedOnce: importedBy(1),
    importedNever: importedBy(0),
  };
}

function readTracked(): SourceTree {
  const tracked = execFileSync("git", ["ls-files", "-z", "core"], { cwd: repositoryRoot, encoding: "utf8" }).split(
    "\0",
  );
  const paths = tracked
    .filter((path) => path.endsWith(".ts") && !path.endsWith(".d.ts") && !path.includes("/assembly/"))
    .filter((path) => existsSync(join(repositoryRoot, path)));
  return new Map(paths.map((path) => [path, readFileSync(join(repositoryRoot, path), "utf8")]));
}

function parseAll(paths: readonly string[]): ReadonlyMap<string, SourceFile> {
  const api = new API({ cwd: repositoryRoot });
  try {
    const [project] = api.updateSnapshot({ openProject: join(repositoryRoot, "tsconfig.json") }).getProjects();
    return new Map(
      paths.map((path) => {
        const file = project?.program.getSourceFile(join(repositoryRoot, path));
        if (file === undefined) throw new Error(`${path}: expected a file of tsconfig.json`);
        return [path, file];
      }),
    );
  } finally {
    api.close();
  }
}

interface WrittenFunction {
  readonly isNamed: boolean;
  readonly lines: number;
}

function functionsOf(file: SourceFile): readonly WrittenFunction[] {
  const found: WrittenFunction[] = [];
  const visit = (node: Node): void => {
    if (isFunctionLikeDeclaration(node) && node.body !== undefined) {
      const lineOf = (position: number): number => file.getLineAndCharacterOfPosition(position).line;
      found.push({ isNamed: isNamed(node), lines: lineOf(node.getEnd()) - lineOf(node.getStart(file)) + 1 });
    }
    node.forEachChild(visit);
  };
  visit(file);
  return found;
}

function isNamed(node: Node): boolean {
  if (!isArrowFunction(node) && !isFunctionExpression(node)) return true;
  return isVariableDeclaration(node.parent) || isPropertyDeclaration(node.parent) || isPropertyAssignment(node.parent);
}

function findSharedNames(parsed: ReadonlyMap<string, SourceFile>): readonly SharedName[] {
  const paths = new Map<string, readonly string[]>();
  for (const [path, file] of parsed) {
    for (const name of exportedNamesOf(file)) paths.set(name, [...(paths.get(name) ?? []), path]);
  }
  return [...paths]
    .filter(([, where]) => where.length > 1)
    .map(([name, where]) => ({ name, paths: where }))
    .sort((a, b) => b.paths.length - a.paths.length || (a.name < b.name ? -1 : 1));
}

/** The names a file both declares and exports, each once: a value and a type of one name are one. */
function exportedNamesOf(file: SourceFile): ReadonlySet<string> {
  const declared = new Set<string>();
  const exported = new Set<string>();
  const listed: string[] = [];
  for (const statement of file.statements) {
    listed.push(...listedNamesOf(statement));
    const isExported = (statement as { modifiers?: readonly Node[] }).modifiers?.some(isExportKeyword) === true;
    for (const name of declaredNamesOf(statement)) {
      declared.add(name);
      if (isExported) exported.add(name);
    }
  }
  return new Set([...exported, ...listed.filter((name) => declared.has(name))]);
}

/** The names of `export { … }`; none of `export { … } from "…"`. */
function listedNamesOf(statement: Node): readonly string[] {
  if (!isExportDeclaration(statement) || statement.moduleSpecifier !== undefined) return [];
  const clause = statement.exportClause;
  if (clause === undefined || !isNamedExports(clause)) return [];
  return clause.elements.map(({ name, propertyName }) => (propertyName ?? name).text);
}

function declaredNamesOf(statement: Node): readonly string[] {
  if (!isVariableStatement(statement)) {
    const { name } = statement as { name?: Node };
    return name !== undefined && isIdentifier(name) ? [name.text] : [];
  }
  return statement.declarationList.declarations.flatMap(({ name }) => (isIdentifier(name) ? [name.text] : []));
}

function countImporters(tree: SourceTree): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const [path, text] of tree) {
    const imported = new Set(importsOf(path, text).map((each) => each.path));
    for (const each of imported) if (each !== undefined) counts.set(each, (counts.get(each) ?? 0) + 1);
  }
  return counts;
}

function spreadOf(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.floor(share * (sorted.length - 1))] ?? 0;
  return { count: sorted.length, p50: at(0.5), p90: at(0.9) };
}
