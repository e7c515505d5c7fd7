import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { repositoryRoot } from "../check/source-tree.ts";
import { type InspectedGateway, withInspectedGateway } from "./governed-call.ts";
import type { CountedFunction, CoveredScript, InspectedProcess, ScriptPlace } from "./inspected-process.ts";

/*
 * Rules of counting:
 * - The window holds one `tools/call` on a connection that is open already, and `settleMs` after its answer, for what
 *   the gateway does once it has answered. Of several windows the one with the fewest calls is told, as timers add.
 * - The main thread of the gateway's process is counted. Workers are not: with the baseline pack none takes part.
 * - A function is a range of a script that V8 counted, and thus also each anonymous arrow function, getter, setter,
 *   constructor and initializer of fields. The code of a module itself is none.
 * - Calls are the counts of V8 added up; going on after an `await` or a `yield` is none.
 * - Own functions are those of `dist/core/` and of `dist/sdk/src`, library functions those of `node_modules/`.
 *   What Node has built in is neither.
 */

export interface CoveredFile {
  /** The source file, from the repository's root. */
  readonly path: string;
  /** Names in the order of their first call; an anonymous one by the function around it: `serve > (anonymous)`. */
  readonly functions: string[];
}

export interface CallCoverage {
  /** In the order of the first call of any of its functions. */
  readonly files: CoveredFile[];
  readonly functions: number;
  readonly ownCalls: number;
  readonly libraryCalls: number;
}

interface OwnFunction {
  readonly path: string;
  readonly name: string;
  readonly scriptId: string;
  readonly file: string;
  readonly start: number;
  readonly end: number;
  readonly calls: number;
}

const warmUpCalls = 50;
const windows = 7;
const settleMs = 100;
const dist = join(repositoryRoot, "dist");
const ownUrls = ["core/", "sdk/src/"].map((folder) => pathToFileURL(join(dist, folder)).href);

/** Counts what one allowed `tools/call` through a gateway of production configuration runs in its process. */
export function coverOneCall(): Promise<CallCoverage> {
  return withInspectedGateway(async (gateway) => {
    const scripts = await coverQuietest(gateway);
    const own = scripts.flatMap(ownFunctionsOf);
    const ordered = await sortByFirstCall(own, gateway);
    return {
      files: filesOf(ordered),
      functions: own.length,
      ownCalls: sum(own.map(({ calls }) => calls)),
      libraryCalls: sum(scripts.filter(isLibrary).map(callsOf)),
    };
  });
}

async function coverQuietest({ inspected, call }: InspectedGateway): Promise<readonly CoveredScript[]> {
  for (let n = 0; n < warmUpCalls; n++) await call();
  await inspected.startCoverage();
  const taken: (readonly CoveredScript[])[] = [];
  for (let n = 0; n < windows; n++) {
    await sleep(settleMs);
    await inspected.takeCoverage();
    await call();
    await sleep(settleMs);
    taken.push(await inspected.takeCoverage());
  }
  await inspected.stopCoverage();
  return taken.sort((a, b) => sum(a.map(callsOf)) - sum(b.map(callsOf)))[0] ?? [];
}

function ownFunctionsOf(script: CoveredScript): readonly OwnFunction[] {
  const { scriptId, url, functions } = script;
  if (!ownUrls.some((folder) => url.startsWith(folder))) return [];
  const file = fileURLToPath(url);
  const path = file.slice(dist.length + 1).replace(/\.js$/, ".ts");
  return functions.flatMap((each) => {
    const [{ startOffset: start, endOffset: end, count: calls }] = each.ranges;
    const isModule = start === 0 && each.functionName === "";
    return isModule || calls === 0 ? [] : [{ path, name: nameOf(each, functions), scriptId, file, start, end, calls }];
  });
}

function nameOf({ functionName, ranges }: CountedFunction, functions: readonly CountedFunction[]): string {
  if (functionName !== "") return functionName;
  const [{ startOffset, endOffset }] = ranges;
  const around = functions.findLast(
    ({ functionName: name, ranges: [range] }) =>
      name !== "" && range.startOffset <= startOffset && endOffset <= range.endOffset,
  );
  return around === undefined ? "(anonymous)" : `${around.functionName} > (anonymous)`;
}

function isLibrary({ url }: CoveredScript): boolean {
  return url.includes("/node_modules/");
}

function callsOf({ functions }: CoveredScript): number {
  return sum(functions.map(({ ranges: [{ count }] }) => count));
}

/**
 * Makes another call, with a condition at the start of each function that notes its turn. A function that has no turn
 * in it follows the one before it in its file.
 */
async function sortByFirstCall(
  functions: readonly OwnFunction[],
  { inspected, call }: InspectedGateway,
): Promise<readonly OwnFunction[]> {
  await noteTurns(functions, inspected);
  await inspected.evaluate("globalThis.shapeTurns = new Set()");
  await call();
  await sleep(settleMs);
  const noted = (await inspected.evaluate("[...globalThis.shapeTurns]")) as number[];
  const turnOf = new Map(noted.map((n, turn) => [n, turn]));
  let before: { readonly path: string; readonly turn: number } | undefined;
  const turned = functions.map((each, n) => {
    const turn = turnOf.get(n) ?? (before?.path === each.path ? before.turn : noted.length);
    before = { path: each.path, turn };
    return { each, turn };
  });
  return turned.sort((a, b) => a.turn - b.turn).map(({ each }) => each);
}

async function noteTurns(functions: readonly OwnFunction[], inspected: InspectedProcess): Promise<void> {
  const found = await Promise.all(functions.map((each) => findStart(each, inspected)));
  const starts = new Map<string, { readonly place: ScriptPlace; readonly noted: number[] }>();
  for (const [n, place] of found.entries()) {
    if (place === undefined) continue;
    const id = `${place.scriptId}:${place.lineNumber}:${place.columnNumber}`;
    const { noted } = starts.get(id) ?? { noted: [] };
    starts.set(id, { place, noted: [...noted, n] });
  }
  const conditions = [...starts.values()].map(({ place, noted }) =>
    inspected.setBreakpoint(place, `[${noted}].forEach((n) => globalThis.shapeTurns?.add(n)), false`),
  );
  await Promise.all(conditions);
}

/** The first place in a function where V8 can stop; a few functions of one expression have none. */
async function findStart(each: OwnFunction, inspected: InspectedProcess): Promise<ScriptPlace | undefined> {
  const text = readFileSync(each.file, "utf8");
  // At its very start V8 stops for the expression that makes the function.
  const [start] = await inspected.findStops(placeAt(text, each.start + 1, each), placeAt(text, each.end, each));
  return start;
}

function placeAt(text: string, offset: number, { scriptId }: OwnFunction): ScriptPlace {
  const lineStart = text.lastIndexOf("\n", offset - 1) + 1;
  const lineNumber = text.slice(0, lineStart).split("\n").length - 1;
  return { scriptId, lineNumber, columnNumber: offset - lineStart };
}

function filesOf(functions: readonly OwnFunction[]): CoveredFile[] {
  const paths = [...new Set(functions.map(({ path }) => path))];
  return paths.map((path) => ({
    path,
    functions: functions.filter((each) => each.path === path).map(({ name }) => name),
  }));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
