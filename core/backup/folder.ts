import { constants, type Stats } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readdir, realpath, rename, rm } from "node:fs/promises";
import { join, sep } from "node:path";
import { GatewayError } from "../action/error.ts";
import { syncFolder } from "../store/folder.ts";

/** A complete backup. */
interface BackupFile {
  readonly name: string;
  /** RFC 3339. */
  readonly madeAt: string;
  readonly bytes: number;
}

const namePattern = /^backup-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})Z-[0-9a-f]{8}\.jsonl$/;
const partialPrefix = ".partial-";

/** The name of a backup made at a time, with 4 unpredictable bytes; names ascend with time. */
export function backupName(madeAt: string, random: Uint8Array): string {
  return `backup-${madeAt.replace(/[-:.]/g, "")}-${Buffer.from(random).toString("hex")}.jsonl`;
}

/**
 * The folder of the backups. Only the gateway chooses what its names lead to. It is checked before each use: no
 * symbolic link, this user's alone, neither in the data folder nor around it.
 */
export class BackupFolder {
  readonly #path: string;
  readonly #dataDir: string;

  constructor(path: string, dataDir: string) {
    this.#path = path;
    this.#dataDir = dataDir;
  }

  /** Makes the folder where there is none (mode 0700). Throws STATE_UNUSABLE with the next step where it may not be used. */
  async open(): Promise<void> {
    try {
      await mkdir(this.#path, { recursive: true, mode: 0o700 });
      await this.#check();
      await this.#removeFiles((name) => name.startsWith(partialPrefix) && isName(name.slice(partialPrefix.length)));
    } catch (cause) {
      if (cause instanceof GatewayError) throw cause;
      throw this.#fault(
        `cannot be used (${(cause as NodeJS.ErrnoException).code}); check the disk, or choose another`,
        cause,
      );
    }
  }

  /** A new, empty file that is none of the backups until it is published. Mode 0600. */
  async create(name: string): Promise<FileHandle> {
    await this.#check();
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
    return open(this.partialPath(name), flags, 0o600);
  }

  partialPath(name: string): string {
    return join(this.#path, partialPrefix + checkedName(name));
  }

  /** Makes a file one of the backups. Durable when it resolves. */
  async publish(name: string): Promise<void> {
    await rename(this.partialPath(name), join(this.#path, checkedName(name)));
    await syncFolder(this.#path);
  }

  async discard(name: string): Promise<void> {
    await rm(this.partialPath(name), { force: true });
  }

  /** The names of the complete ones, the latest first. */
  async names(): Promise<readonly string[]> {
    await this.#check();
    const entries = await readdir(this.#path, { withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile() && isName(entry.name)).map(({ name }) => name);
    return files.sort().reverse();
  }

  /** One of them; undefined where it went away meanwhile. */
  async file(name: string): Promise<BackupFile | undefined> {
    const found = await statOf(join(this.#path, checkedName(name)));
    return found?.isFile() ? { name, madeAt: timeIn(name), bytes: found.size } : undefined;
  }

  /** Deletes all but the latest `keep`. Durable when it resolves. */
  async prune(keep: number): Promise<void> {
    const old = new Set((await this.names()).slice(keep));
    if (old.size > 0) await this.#removeFiles((name) => old.has(name));
  }

  async #removeFiles(isOver: (name: string) => boolean): Promise<void> {
    for (const name of (await readdir(this.#path)).filter(isOver)) await rm(join(this.#path, name), { force: true });
    await syncFolder(this.#path);
  }

  async #check(): Promise<void> {
    const found = await lstat(this.#path);
    if (found.isSymbolicLink()) throw this.#fault("is a symbolic link; name the folder itself");
    if (!found.isDirectory()) throw this.#fault("is not a folder");
    if ((found.mode & 0o077) !== 0) throw this.#fault("is open to others; `chmod 700` it");
    if (process.getuid !== undefined && found.uid !== process.getuid()) throw this.#fault("belongs to another user");
    // Links above either may lead one into the other.
    const [path, data] = await Promise.all([realpath(this.#path), realpath(this.#dataDir)]);
    if (`${path}${sep}`.startsWith(`${data}${sep}`)) throw this.#fault("lies in `data_dir`: what takes one takes both");
    if (`${data}${sep}`.startsWith(`${path}${sep}`))
      throw this.#fault("lies around `data_dir`: its keys do not belong there");
  }

  #fault(detail: string, cause?: unknown): GatewayError {
    return new GatewayError("STATE_UNUSABLE", `\`resilience.backup_dir\`, \`${this.#path}\`, ${detail}`, { cause });
  }
}

function isName(name: string): boolean {
  return namePattern.test(name);
}

/** INVARIANT: no other name becomes part of a path. */
function checkedName(name: string): string {
  if (!isName(name)) throw new TypeError("BackupFolder: expected the name of a backup");
  return name;
}

function timeIn(name: string): string {
  return name.replace(namePattern, "$1-$2-$3T$4:$5:$6.$7Z");
}

async function statOf(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
