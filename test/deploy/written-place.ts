import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../support/command-host.ts";

/** The lines of a new installation's configuration that name what a gateway writes to: data, mark, notes of the witness, backups. */
const lines = [/^data_dir: .*$/m, /^ +mark: .*$/m, /^ +path: witness$/m, /^ +backup_dir: .*$/m] as const;

/**
 * Returns the paths that the comments of a file name for data, mark, notes of the witness and backups, in this order. Throws where
 * they are others than that many, or the gateway refuses the configuration of a new installation with them.
 */
export async function writtenPlaces(
  installation: string,
  text: string,
  edit = (config: string): string => config,
): Promise<readonly string[]> {
  const paths = text.match(/(?<=^#.*)\/var\/lib\/[\w./-]*\w/gm) ?? [];
  if (paths.length !== lines.length) throw new Error(`expected ${lines.length} paths, got ${paths.join(", ")}`);
  const folder = await mkdtemp(join(tmpdir(), "written-place-"));
  try {
    await cp(installation, folder, { recursive: true });
    const file = join(folder, "gateway.yaml");
    let config = edit(await readFile(file, "utf8"));
    for (const [index, line] of lines.entries()) {
      if (!line.test(config)) throw new Error(`expected a line ${line.source}`);
      config = config.replace(line, (found) => found.replace(/:.*/, `: ${paths[index]}`));
    }
    await writeFile(file, config);
    const { code, stdout, stderr } = await runCommand(["config", "check", file]);
    if (code !== 0) throw new Error(stdout + stderr);
    return paths;
  } finally {
    await rm(folder, { recursive: true });
  }
}
