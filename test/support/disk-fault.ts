import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { compilePreload } from "./preload.ts";

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
    return new DiskFault(await compilePreload("disk-fault", folder), join(folder, "fault"));
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
