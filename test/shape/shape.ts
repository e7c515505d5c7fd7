import { type CallCoverage, coverOneCall } from "./call-coverage.ts";
import { type CoreShape, measureCore } from "./core-shape.ts";

/**
 * Prints what one allowed call runs in a gateway, and measures of `core/`; asserts nothing.
 * `--files` lists the files and functions that the call runs; `--json` prints all of it for a program.
 */
const words = new Set(process.argv.slice(2));
const [call, core] = [await coverOneCall(), measureCore()];

if (words.has("--json")) process.stdout.write(`${JSON.stringify({ call, core }, null, 2)}\n`);
else {
  process.stdout.write(`${callText(call)}\n${coreText(core)}`);
  if (words.has("--files")) process.stdout.write(`\n${filesText(call)}`);
}

function callText({ files, functions, ownCalls, libraryCalls }: CallCoverage): string {
  return lines([
    "One allowed tools/call",
    `  files of our own       ${files.length}`,
    `  functions of our own   ${functions}`,
    `  calls of our own       ${ownCalls}`,
    `  calls in libraries     ${libraryCalls}`,
  ]);
}

function coreText(core: CoreShape): string {
  const { fileLines, longest, namedFunctionLines: named, functionLines: all, sharedNames } = core;
  return lines([
    "core/",
    `  files                  ${core.files}`,
    `  lines                  ${core.lines}`,
    `  lines of a file        p50 ${fileLines.p50}, p90 ${fileLines.p90}, longest ${longest.lines} (${longest.path})`,
    `  lines of a function    p50 ${named.p50}, p90 ${named.p90} (of ${named.count} with a name)`,
    `    anonymous included   p50 ${all.p50}, p90 ${all.p90} (of ${all.count})`,
    `  with one importer      ${core.importedOnce.length}`,
    `  without importer       ${core.importedNever.length}`,
    ...core.importedNever.map((path) => `    ${path}`),
    `  names of two files     ${sharedNames.length}`,
    ...sharedNames.map(({ name, paths }) => `    ${name}: ${paths.join(", ")}`),
  ]);
}

function filesText({ files }: CallCoverage): string {
  return lines(files.flatMap(({ path, functions }) => [path, ...functions.map((name) => `  ${name}`)]));
}

function lines(written: readonly string[]): string {
  return `${written.join("\n")}\n`;
}
