import { readFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join, sep } from "node:path";
import { repositoryRoot } from "../check/source-tree.ts";

/** Prints the compiled tests of `unit`, `check`, `e2e` and `attack` that `npm test` leaves out, one path a line; see `.mocharc.json`. */
const { spec, ignore } = JSON.parse(readFileSync(join(repositoryRoot, ".mocharc.json"), "utf8")) as {
  readonly spec: readonly string[];
  readonly ignore: readonly string[];
};

function names(pattern: string, path: string): boolean {
  const [folder, rest] = pattern.split("/**");
  return rest === undefined ? pattern === path : path.startsWith(`${folder}/`);
}

for (const folder of ["unit", "check", "e2e", "attack"]) {
  const files = await readdir(join(repositoryRoot, "dist/test", folder), { recursive: true });
  for (const file of files.toSorted()) {
    const path = `dist/test/${folder}/${file.split(sep).join("/")}`;
    if (!path.endsWith(".test.js")) continue;
    const isFirst = spec.some((each) => names(each, path)) && !ignore.some((each) => names(each, path));
    if (!isFirst) process.stdout.write(`${path}\n`);
  }
}
