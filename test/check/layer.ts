import { type Import, importsOf, type SourceTree } from "./source-tree.ts";

/** The folders of `core/`, each line above those that may import it; see `core/README.md`. */
export const layers: readonly (readonly string[])[] = [
  ["action"],
  ["fact"],
  ["egress"],
  ["config", "identity", "observe", "operation"],
  ["store"],
  ["evidence"],
  ["replica"],
  ["trust"],
  ["distribution"],
  ["plugin"],
  ["policy"],
  ["engine"],
  ["approval", "session", "kill", "ticket", "manifest", "definition", "usage", "notify", "backup", "report"],
  ["upstream", "provider"],
  ["road"],
  ["explain"],
  ["http"],
  ["gateway"],
  ["admin"],
  ["compose"],
  ["cli"],
];

/** Returns the layer of a file of `core/`, or -1 for a folder that the design does not name. */
function layerOf(path: string): number {
  const folder = /^core\/([^/]+)\//.exec(path)?.[1] ?? "";
  return layers.findIndex((line) => line.includes(folder));
}

/** Imports point down, or to a neighbour on the same line; circles are found by `cycleFaults`. */
export function layerFaults(tree: SourceTree): readonly string[] {
  return edgesOf(tree, "core/").flatMap(({ from, to }) => {
    const layer = layerOf(from);
    if (layer === -1) return [`${from}: is in no folder of the design`];
    if (to.name === "(computed)") return [`${from}: imports a module whose name is computed`];
    if (to.path === undefined || to.path.startsWith("sdk/")) return [];
    const target = layerOf(to.path);
    if (target === -1) return [`${from}: imports ${to.path}, which is in no folder of the design`];
    return target > layer ? [`${from}: imports ${to.path}, which is above it`] : [];
  });
}

/** Folders of one line import one another in no circle, even where their files do not. */
export function neighbourFaults(tree: SourceTree): readonly string[] {
  const folders = new Map<string, Set<string>>();
  for (const { from, to } of edgesOf(tree, "core/")) {
    const [source, target] = [from.split("/")[1] ?? "", to.path?.split("/")[1] ?? ""];
    if (to.path === undefined || source === target || layerOf(from) !== layerOf(to.path)) continue;
    folders.set(source, (folders.get(source) ?? new Set()).add(target));
  }
  const reaches = (start: string, goal: string, seen: Set<string> = new Set()): boolean =>
    [...(folders.get(start) ?? [])].some(
      (next) => next === goal || (!seen.has(next) && reaches(next, goal, seen.add(next))),
    );
  return [...folders.keys()]
    .filter((folder) => reaches(folder, folder))
    .map((folder) => `core/${folder}: imports itself through its neighbours`);
}

/** `core/action` names no module but its own, pure parts of Node and pure packages; and no clock, timer or chance. */
export function actionFaults(tree: SourceTree): readonly string[] {
  const pure = new Set(["node:crypto", "node:buffer", "yaml"]);
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

/** Koa is named in the folders that serve ports alone. */
export function koaFaults(tree: SourceTree): readonly string[] {
  return edgesOf(tree, "core/")
    .filter(({ from, to }) => /^@?koa\b/.test(to.name) && !/^core\/(?:http|gateway|admin)\//.test(from))
    .map(({ from, to }) => `${from}: imports \`${to.name}\``);
}

/** Names of modules that open connections, and of these the ones that open none. */
const quietNames: Readonly<Record<string, RegExp>> = {
  "node:net": /^(?:isIP|isIPv4|isIPv6|BlockList|createServer)$/,
  "node:http": /^(?:createServer|STATUS_CODES)$/,
  "node:https": /^$/,
  "node:http2": /^$/,
  "node:tls": /^$/,
  "node:dgram": /^$/,
  ws: /^WebSocketServer$/,
};

/** Every connection is opened by way of `core/egress`. Commands connect to addresses of their user, and follow no redirect. */
export function egressFaults(tree: SourceTree): readonly string[] {
  return filesBelow(tree, "core/").flatMap(([path, source]) => {
    const isCommand = path.startsWith("core/cli/");
    const followsNone = isCommand && source.includes("followRedirects: false");
    const imports = importsOf(path, source).filter(({ name }) => !(name === "ws" && followsNone));
    const loud = imports.flatMap(({ name, values }) =>
      values.filter((value) => quietNames[name]?.test(value) === false).map((value) => `${value}\` of \`${name}`),
    );
    const usesUndici = imports.some(({ name, values }) => name === "undici" && values.length > 0);
    // Replicas connect to the one that their database names, and prove to each other that they share a secret.
    if (["channel", "forwarded-connection"].some((name) => path === `core/replica/${name}.ts`)) return [];
    const isGuarded = source.includes("egress.connector(") || path.startsWith("core/egress/");
    const fetches = !usesUndici && /(?<![.\w#])fetch\((?!\))/.test(withoutCommentLines(source));
    const mayFetch = isCommand && source.includes('redirect: "error"');
    return [
      ...loud.map((name) => `${path}: opens connections with \`${name}\``),
      ...(usesUndici && !isGuarded ? [`${path}: gives no \`egress.connector\` to undici`] : []),
      ...(fetches && !mayFetch ? [`${path}: calls \`fetch\``] : []),
    ];
  });
}

/** The threads that a plugin is compiled, tested and run in load no package: each start waits for them. */
export function threadFaults(tree: SourceTree): readonly string[] {
  const faults: string[] = [];
  const seen = new Set([...tree.keys()].filter((path) => /^core\/(?:plugin|policy)\/[\w-]+-worker\.ts$/.test(path)));
  // A set goes on with what is added meanwhile.
  for (const from of seen) {
    for (const { name, path, values } of importsOf(from, tree.get(from) ?? "")) {
      if (values.length === 0 || name.startsWith("node:")) continue;
      if (path === undefined) faults.push(`${from}: loads \`${name}\` in a thread`);
      else seen.add(path);
    }
  }
  return faults;
}

/** What both sides of the WASM wall share must be publishable on its own. */
export function sdkFaults(tree: SourceTree): readonly string[] {
  return edgesOf(tree, "sdk/")
    .filter(({ to }) => to.path !== undefined && !to.path.startsWith("sdk/"))
    .map(({ from, to }) => `${from}: imports ${to.path}`);
}

/** From the road to the ports, parts are received, not made: `core/compose` and the command line make them. */
export function compositionFaults(tree: SourceTree): readonly string[] {
  const [road, compose] = [layerOf("core/road/run.ts"), layerOf("core/compose/compose.ts")];
  return filesBelow(tree, "core/").flatMap(([path, source]) => {
    const layer = layerOf(path);
    if (layer < road || layer >= compose) return [];
    const made = new Set(
      [...source.matchAll(/\bnew\s+([\w$]+)|\b((?:open|create|start)[A-Z][\w$]*)\s*\(/g)].map(madeName),
    );
    return importsOf(path, source)
      .filter(({ path: target }) => isPart(target ?? "", road))
      .flatMap(({ values }) => values)
      .filter((name) => made.has(name))
      .map((name) => `${path}: makes its own part with \`${name}\``);
  });
}

function isPart(path: string, road: number): boolean {
  const layer = layerOf(path);
  return layer > 0 && layer < road;
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
