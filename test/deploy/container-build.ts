import { cp, mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { runProgram } from "../support/program.ts";

/** One instruction of a Containerfile: its word and what follows. */
export interface Instruction {
  readonly word: string;
  readonly rest: string;
}

/** Reads the instructions of a Containerfile without continued lines. */
export function parseContainerfile(text: string): readonly Instruction[] {
  return text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => ({ word: line.split(" ")[0] ?? "", rest: line.slice(line.indexOf(" ") + 1) }));
}

/** A stage as folders of this machine: `/` of it is `root`. */
interface Stage {
  readonly root: string;
  workdir: string;
}

/**
 * Carries out what a Containerfile copies and runs, each stage in a folder below `folder` that begins empty, with the
 * Node of this process. Resolves with the working directory of the last stage. Rejects where a command fails.
 */
export async function carryOut(containerfile: string, context: string, folder: string): Promise<string> {
  const stages = new Map<string, Stage>();
  let stage: Stage = { root: folder, workdir: "/" };
  for (const { word, rest } of parseContainerfile(await readFile(containerfile, "utf8"))) {
    if (word === "FROM") {
      const name = / AS (\w+)$/.exec(rest)?.[1] ?? "last";
      stage = { root: join(folder, name), workdir: "/" };
      stages.set(name, stage);
    }
    if (word === "WORKDIR") stage.workdir = rest;
    if (word === "COPY") await copy(stage, rest, context, stages);
    if (word === "RUN") await run(stage, rest);
  }
  return join(stage.root, stage.workdir);
}

async function copy(stage: Stage, rest: string, context: string, stages: ReadonlyMap<string, Stage>): Promise<void> {
  const [, from, names = ""] = /^(?:--from=(\w+) )?(.*)$/.exec(rest) ?? [];
  const source = from === undefined ? context : (stages.get(from)?.root ?? "");
  const paths = names.split(" ");
  const target = join(stage.root, stage.workdir, paths.pop() ?? "");
  for (const path of paths) {
    const to = names.endsWith("/") ? join(target, path.split("/").at(-1) ?? "") : target;
    await mkdir(dirname(to), { recursive: true });
    await cp(join(source, path), to, { recursive: true, verbatimSymlinks: true });
  }
}

async function run(stage: Stage, command: string): Promise<void> {
  const place = join(stage.root, stage.workdir);
  const { code, stdout, stderr } = await runProgram("sh", ["-c", `cd '${place}' && ${command}`]);
  if (code !== 0) throw new Error(`\`${command}\` ended with ${code}: ${stdout}${stderr}`);
}
