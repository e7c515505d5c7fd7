import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { repositoryRoot } from "../check/source-tree.ts";

const flags = ["-O1", "-fno-builtin", "-D__NO_INLINE__", "-shared", "-fPIC", "-Wall", "-Werror"];

/** Compiles `fault/<name>.c` with the system's C compiler into a library in `folder`; returns its path, for LD_PRELOAD. */
export async function compilePreload(name: string, folder: string): Promise<string> {
  const library = join(folder, `${name}.so`);
  const source = join(repositoryRoot, `test/fault/${name}.c`);
  await promisify(execFile)("cc", [...flags, "-o", library, source, "-ldl"]);
  return library;
}
