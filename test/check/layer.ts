import { type Import, importsOf, type SourceTree } from "./source-tree.ts";

/** The folders of the first layer: siblings that do not know one another. */
const siblings: ReadonlySet<string> = new Set(
  "config policy extension session approval evidence identity upstream provider usage store observe notify ticket manifest".split(
    " ",
  ),
);

interface Place {
  readonly layer: number;
  readonly folder: string;
}

/** Where a file of `core/` belongs, or undefined for a place the design does not know. */
function placeOf(path: string): Place | undefined {
  if (/^core\/(?:gateway|parts|peers|endpoints|instance|permits|policies)\.ts$/.test(path))
    return { layer: 4, folder: "core" };
  const folder = /^core\/([^/]+)\//.exec(path)?.[1] ?? "";
  const place = (layer: number): Place => ({ layer, folder });
  if (folder === "kernel") return place(0);
  if (siblings.has(folder)) return place(1);
  if (folder === "pipeline") return place(2);
  if (folder === "ingress") return place(3);
  return folder === "cli" ? place(4) : undefined;
}

/** Imports point down; files of the first layer import their own folder and the kernel only. */
export function layerFaults(tree: SourceTree): readonly string[] {
  return edgesOf(tree, "core/").flatMap(({ from, to }) => {
    const source = placeOf(from);
    if (source === undefined) return [`${from}: is in no layer of the design`];
    if (to.name === "(computed)") return [`${from}: imports a module whose name is computed`];
    if (to.path === undefined || to.path.startsWith("sdk/")) return [];
    const target = placeOf(to.path);
    if (target === undefined) return [`${from}: imports ${to.path}, which is in no layer of the design`];
    if (target.folder === source.folder) return [];
    if (target.layer > source.layer) return [`${from}: imports ${to.path}, which is above it`];
    return target.layer === source.layer && source.layer < 4 ? [`${from}: imports its sibling ${to.path}`] : [];
  });
}

/** The kernel names no module but its own, pure parts of Node and pure packages; and no clock, timer or chance. */
export function kernelFaults(tree: SourceTree): readonly string[] {
  const pure = new Set(["node:crypto", "node:buffer", "canonicalize", "yaml"]);
  const modules = edgesOf(tree, "core/action/")
    .filter(({ to }) => to.path === undefined && !pure.has(to.name))
    .map(({ from, to }) => `${from}: imports \`${to.name}\``);
  const uses = filesBelow(tree, "core/action/").flatMap(([path, source]) =>
    [...withoutCommentLines(source).matchAll(impure)].map(([word]) => `${path}: uses \`${word}\``),
  );
  return [...modules, ...uses];
}

const impure =
  /\b(?:set(?:Timeout|Interval|Immediate)|queueMicrotask|Date\.now|performance|Math\.random|random(?:Bytes|UUID|Int|Fill|FillSync)|fetch|process|globalThis)\b|\bnew Date\(\)/g;

function withoutCommentLines(source: string): string {
  return source.replace(/^\s*(?:\/\/|\/?\*).*$/gm, "");
}

/** Koa is named in `core/http` alone. */
export function koaFaults(tree: SourceTree): readonly string[] {
  return edgesOf(tree, "core/")
    .filter(({ from, to }) => /^@?koa\b/.test(to.name) && !from.startsWith("core/http/"))
    .map(({ from, to }) => `${from}: imports \`${to.name}\``);
}

/** What both sides of the WASM wall share must be publishable on its own. */
export function sdkFaults(tree: SourceTree): readonly string[] {
  return edgesOf(tree, "sdk/")
    .filter(({ to }) => to.path !== undefined && !to.path.startsWith("sdk/"))
    .map(({ from, to }) => `${from}: imports ${to.path}`);
}

/** Between the first layer and the composition root, parts are received, not made. */
export function compositionFaults(tree: SourceTree): readonly string[] {
  return filesBelow(tree, "core/").flatMap(([path, source]) => {
    const layer = placeOf(path)?.layer;
    if (layer !== 2 && layer !== 3) return [];
    const made = new Set(
      [...source.matchAll(/\bnew\s+([\w$]+)|\b((?:open|create|start)[A-Z][\w$]*)\s*\(/g)].map(madeName),
    );
    return importsOf(path, source)
      .filter(({ path: target }) => placeOf(target ?? "")?.layer === 1)
      .flatMap(({ values }) => values)
      .filter((name) => made.has(name))
      .map((name) => `${path}: makes its own part with \`${name}\``);
  });
}

function madeName([, constructed, factory]: RegExpMatchArray): string | undefined {
  return constructed ?? factory;
}

/** Files that import themselves by way of others, each cycle once. */
export function cycleFaults(tree: SourceTree): readonly string[] {
  const faults: string[] = [];
  const done = new Set<string>();
  const visit = (path: string, road: readonly string[]): void => {
    const start = road.indexOf(path);
    if (start !== -1) faults.push([...road.slice(start), path].join(" → "));
    if (start !== -1 || done.has(path)) return;
    for (const { path: target } of importsOf(path, tree.get(path) ?? "")) {
      if (target !== undefined && tree.has(target)) visit(target, [...road, path]);
    }
    done.add(path);
  };
  for (const path of tree.keys()) visit(path, []);
  return faults;
}

function filesBelow(tree: SourceTree, folder: string): readonly (readonly [string, string])[] {
  return [...tree].filter(([path]) => path.startsWith(folder) && path.endsWith(".ts"));
}

function edgesOf(tree: SourceTree, folder: string): readonly { readonly from: string; readonly to: Import }[] {
  return filesBelow(tree, folder).flatMap(([from, source]) => importsOf(from, source).map((to) => ({ from, to })));
}
