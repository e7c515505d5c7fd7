import { lstat, mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { refuse } from "../evidence/backup/content.ts";
import { syncFolder } from "../evidence/folder-sync.ts";
import type { Mark } from "../evidence/high-water.ts";
import { GatewayError } from "../kernel/error.ts";
import { isLocked, openSnapshot } from "../store/snapshot.ts";
import { readMarks } from "./evidence-folder.ts";

const prefix = ".restore-";
/** In this order: marks without records are a chain that was cut, which no gateway serves. */
const parts = ["high-water", "state"] as const;

/**
 * A data folder that something is restored into. Everything is laid out in a folder inside it, and moved to its place in
 * the end; until then the data folder is as it was.
 */
export class RestoreTarget {
  readonly #data: string;
  readonly #held: readonly string[];
  /** Where the new content is laid out. */
  readonly stage: string;

  private constructor(data: string, held: readonly string[], stage: string) {
    this.#data = data;
    this.#held = held;
    this.stage = stage;
  }

  /**
   * Throws BACKUP_REFUSED where the folder holds state and may not `replace` it, and STATE_UNUSABLE where a gateway runs
   * on it.
   */
  static async open(data: string, replace: boolean): Promise<RestoreTarget> {
    const held: string[] = [];
    for (const part of parts) if (await isThere(join(data, part))) held.push(part);
    if (held.length > 0 && !replace) {
      throw refuse(`\`${data}\` is not empty; choose another folder, or --replace what it holds`);
    }
    if (held.includes("state")) await checkIdle(data);
    for (const name of await readdir(data)) {
      if (name.startsWith(prefix)) await rm(join(data, name), { recursive: true });
    }
    return new RestoreTarget(data, held, await mkdtemp(join(data, prefix)));
  }

  /** What the state that is replaced promised; undefined where its marks cannot be read. */
  async formerMarks(): Promise<ReadonlyMap<string, Mark> | undefined> {
    try {
      return await readMarks(join(this.#data, "high-water"), join(this.stage, "former-high-water"));
    } catch (error) {
      if (error instanceof GatewayError) return undefined;
      throw error;
    }
  }

  /** Moves what was there aside, and the new content to its place. Durable when it resolves. Returns where the old is. */
  async commit(): Promise<string | undefined> {
    const aside = this.#held.length === 0 ? undefined : await this.#moveAside();
    for (const part of parts) {
      // COMMIT POINT: with the second, the folder holds what was restored.
      await rename(join(this.stage, part), join(this.#data, part));
      await syncFolder(this.#data);
    }
    await this.abandon();
    return aside;
  }

  /** Removes what was laid out. */
  async abandon(): Promise<void> {
    await rm(this.stage, { recursive: true, force: true });
  }

  async #moveAside(): Promise<string> {
    const aside = join(this.#data, `replaced-${new Date().toISOString().replace(/[-:.]/g, "")}`);
    await mkdir(aside, { mode: 0o700 });
    for (const part of this.#held) await rename(join(this.#data, part), join(aside, part));
    await syncFolder(aside);
    await syncFolder(this.#data);
    return aside;
  }
}

/** Any other fault of the state is why it is replaced. */
async function checkIdle(data: string): Promise<void> {
  try {
    await (await openSnapshot(data)).close();
  } catch (error) {
    if (isLocked(error)) throw error;
  }
}

async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}
