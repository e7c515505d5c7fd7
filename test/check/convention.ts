import type { SourceTree } from "./source-tree.ts";

const maxFile = 400;

/** Values that are permission, and the one place that may make each. */
const permissions = [
  {
    name: "AuthorizedAction",
    method: "authorize",
    maker: "core/road/authorize.ts",
    definition: "core/action/authorized-action.ts",
  },
  {
    name: "ApprovalGrant",
    method: "grantUse",
    maker: "core/approval/queue.ts",
    definition: "core/action/approval.ts",
  },
  {
    name: "VerifiedExtension",
    method: "admitTrusted",
    maker: "core/trust/verifier.ts",
    definition: "core/trust/verified-extension.ts",
  },
  {
    name: "VerifiedExtension",
    method: "admitUnverified",
    maker: "core/trust/verified-extension.ts",
    definition: "core/trust/verified-extension.ts",
  },
] as const;

/** Nobody but its maker may so much as name the method that makes a permission, by whatever spelling. */
export function permissionFaults(tree: SourceTree): readonly string[] {
  return permissions.flatMap(({ name, method, maker, definition }) => {
    const spellings = [
      new RegExp(`\\.\\s*${method}\\b`),
      new RegExp(`\\[\\s*["'\`]${method}["'\`]\\s*\\]`),
      new RegExp(`\\{[^{}]*\\b${method}\\b[^{}]*\\}\\s*=`),
      new RegExp(`\\bReflect\\b[^;]*\\b${name}\\b`),
    ];
    return [...tree]
      .filter(([path]) => path.endsWith(".ts") && /^(core|sdk|plugins)\//.test(path))
      .filter(([path]) => path !== maker && path !== definition)
      .filter(([, source]) => spellings.some((spelling) => spelling.test(source)))
      .map(([path]) => `${path}: calls \`${method}\``);
  });
}

/** Returns true where each maker still is where the rule above expects it. */
export function makersMake(tree: SourceTree): boolean {
  return permissions.every(({ name, method, maker }) => (tree.get(maker) ?? "").includes(`${name}.${method}(`));
}

/** A file of more than 400 lines is more than one noun. */
export function lengthFaults(tree: SourceTree): readonly string[] {
  return lengths(tree)
    .filter(({ lines }) => lines > maxFile)
    .map(({ path, lines }) => `${path}: has ${lines} lines, expected at most ${maxFile}`);
}

/** The number of files and the length of the median, the 90th percentile and the longest. */
export function lengthSummary(tree: SourceTree): string {
  const sorted = lengths(tree)
    .map(({ lines }) => lines)
    .sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.floor(share * (sorted.length - 1))] ?? 0;
  return `${sorted.length} files, lines: median ${at(0.5)}, p90 ${at(0.9)}, longest ${at(1)}`;
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

/** A hook outside of any suite runs for the tests of every file, not for those below it alone. */
export function hookFaults(tree: SourceTree): readonly string[] {
  return [...tree].flatMap(([path, source]) =>
    [...source.matchAll(/^(?:before|after)(?:Each)?(?=\()/gm)].map(([hook]) => `${path}: \`${hook}\` in no suite`),
  );
}

/** Each folder of `core/` has a README beside what it describes. */
export function readmeFaults(tree: SourceTree): readonly string[] {
  const folders = new Set([...tree.keys()].map((path) => /^core\/[^/]+(?=\/)/.exec(path)?.[0] ?? ""));
  return [...folders]
    .filter((folder) => folder !== "" && !tree.has(`${folder}/README.md`))
    .map((folder) => `${folder}: has no README.md`);
}
