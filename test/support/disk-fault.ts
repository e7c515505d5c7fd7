import { execFile } from "node:child_process";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { repositoryRoot } from "../check/source-tree.ts";

const flags = ["-O1", "-fno-builtin", "-D__NO_INLINE__", "-shared", "-fPIC", "-Wall", "-Werror"];

/** Makes the disk of one process fail on demand; see `fault/disk-fault.c`. */
export class DiskFault {
  /** To be added to the environment of the process. */
  readonly env: Readonly<Record<string, string>>;
  readonly #control: string;

  private constructor(library: string, control: string) {
    this.env = { LD_PRELOAD: library, FAULT_FILE: control };
    this.#control = control;
  }

  /** Compiles the fault with the system's C compiler into `folder`. */
  static async compile(folder: string): Promise<DiskFault> {
    const library = join(folder, "disk-fault.so");
    const source = join(repositoryRoot, "test/fault/disk-fault.c");
    await promisify(execFile)("cc", [...flags, "-o", library, source, "-ldl"]);
    return new DiskFault(library, join(folder, "fault"));
  }

  /** Lets `call` on paths with `part` in them fail with `errno`, from now on. */
  begin(call: "write" | "sync" | "lock" | "open", errno: number, part: string): Promise<void> {
    return writeFile(this.#control, `${call} ${errno} ${part}`);
  }

  /** Lets the process end as `kill -9` does: amid its next write to a path with `part` in it, or around its next sync. */
  beginKill(at: "torn" | "before" | "after", part: string): Promise<void> {
    return writeFile(this.#control, `${at} 1 ${part}`);
  }

  end(): Promise<void> {
    return rm(this.#control, { force: true });
  }
}
