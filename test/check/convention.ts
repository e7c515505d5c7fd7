import type { SourceTree } from "./source-tree.ts";

const longestFile = 260;
const gate = "core/pipeline/gate.ts";
const permission = "core/kernel/authorized-action.ts";

/** Only the gate makes an AuthorizedAction: nobody else may so much as name the method, by whatever spelling. */
export function permissionFaults(tree: SourceTree): readonly string[] {
  const spellings = [
    /\.\s*authorize\b/,
    /\[\s*["'`]authorize["'`]\s*\]/,
    /\{[^{}]*\bauthorize\b[^{}]*\}\s*=/,
    /\bReflect\b[^;]*\bAuthorizedAction\b/,
  ];
  return [...tree]
    .filter(([path]) => path.endsWith(".ts") && /^(core|sdk|plugins)\//.test(path))
    .filter(([path]) => path !== gate && path !== permission)
    .filter(([, source]) => spellings.some((spelling) => spelling.test(source)))
    .map(([path]) => `${path}: calls \`authorize\``);
}

/** Whether the gate still is where the rule above expects it. */
export function gateAuthorizes(tree: SourceTree): boolean {
  return /\bAuthorizedAction\.authorize\(/.test(tree.get(gate) ?? "");
}

/** A file of more than 260 lines is more than one noun. */
export function lengthFaults(tree: SourceTree): readonly string[] {
  return lengths(tree)
    .filter(({ lines }) => lines > longestFile)
    .map(({ path, lines }) => `${path}: has ${lines} lines, expected at most ${longestFile}`);
}

/** The aims: about 130 lines a file, 180 at the 90th percentile. */
export function lengthSummary(tree: SourceTree): string {
  const sorted = lengths(tree)
    .map(({ lines }) => lines)
    .sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.floor(share * (sorted.length - 1))] ?? 0;
  return `${sorted.length} files, lines: median ${at(0.5)}, p90 ${at(0.9)} (aim 180), longest ${at(1)}`;
}

function lengths(tree: SourceTree): readonly { readonly path: string; readonly lines: number }[] {
  return [...tree]
    .filter(([path]) => path.endsWith(".ts"))
    .map(([path, source]) => ({ path, lines: source.replace(/\n$/, "").split("\n").length }));
}

/** Ways around the compiler, the linter and the test runner, and work left undone. */
const escapes = [
  /\bas any\s*(?=[),;.\]>}]|$)/gm,
  /@ts-(?:ignore|nocheck|expect-error)/g,
  /biome-(?:ignore)/g,
  /\b(?:it|describe|context)\.(?:only|skip)\b|\bthis\.skip\(/g,
  /\b(?:TO[D]O|FIXM[E])\b/g,
];

export function escapeFaults(tree: SourceTree): readonly string[] {
  return [...tree].flatMap(([path, source]) =>
    escapes.flatMap((words) => [...source.matchAll(words)].map(([said]) => `${path}: says \`${said.trim()}\``)),
  );
}

/** Each folder of `core/` has a README beside what it describes. */
export function readmeFaults(tree: SourceTree): readonly string[] {
  const folders = new Set([...tree.keys()].map((path) => /^core\/[^/]+(?=\/)/.exec(path)?.[0] ?? ""));
  return [...folders]
    .filter((folder) => folder !== "" && !tree.has(`${folder}/README.md`))
    .map((folder) => `${folder}: has no README.md`);
}
