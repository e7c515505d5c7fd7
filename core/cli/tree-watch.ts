import { createHash } from "node:crypto";
import { type FSWatcher, readdirSync, readFileSync, statSync, watch } from "node:fs";
import { basename, dirname, join } from "node:path";
import { GatewayError } from "../action/error.ts";

const maxFolders = 256;

interface TreeWatchOptions {
  /** Files, or folders with all they hold. What is not there yet may come. */
  readonly paths: readonly string[];
  readonly onChange: () => void;
  /** Hears of each path whose changes go unseen from now on. */
  readonly onBlind: (path: string) => void;
}

/**
 * Tells that something below some paths changed. Only folders are watched: a watch on a file ends, in silence, when
 * another file is renamed into its place, and that is how editors and deployments write.
 */
export class TreeWatch {
  readonly #options: TreeWatchOptions;
  #watchers: readonly FSWatcher[] = [];

  constructor(options: TreeWatchOptions) {
    this.#options = options;
    this.refresh();
  }

  /** Looks again for folders to watch; call it after each change, for those that are new. */
  refresh(): void {
    this.close();
    this.#watchers = this.#options.paths.flatMap((path) => [
      ...this.#watchFolder(dirname(path), basename(path)),
      ...foldersIn(path).flatMap((folder) => this.#watchFolder(folder, null)),
    ]);
  }

  close(): void {
    for (const watcher of this.#watchers) watcher.close();
    this.#watchers = [];
  }

  /** `name`: the one entry that matters; null for all of them. */
  #watchFolder(folder: string, name: string | null): FSWatcher[] {
    const { onChange, onBlind } = this.#options;
    try {
      const watcher = watch(folder, (_event, changed) => {
        if (name === null || changed === null || changed === name) onChange();
      });
      watcher.on("error", () => onBlind(folder));
      return [watcher];
    } catch {
      onBlind(folder);
      return [];
    }
  }
}

/** A folder and those below it, at most 256; none for a file, or for what is not there. */
function foldersIn(path: string): readonly string[] {
  const found: string[] = [];
  const waiting = [path];
  for (let folder = waiting.shift(); folder !== undefined && found.length < maxFolders; folder = waiting.shift()) {
    const parent = folder;
    const inner = innerFolders(parent);
    if (inner === null) continue;
    found.push(parent);
    waiting.push(...inner.map((name) => join(parent, name)));
  }
  return found;
}

function innerFolders(path: string): readonly string[] | null {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  } catch {
    return null; // a file, or gone by now: its own folder's watch tells when that changes
  }
}

/** What an author edits. What tools write beside it, such as a module, starts nothing. */
const edited = ["assembly", "rules", "tests", "data", "asconfig.json", "pack.yaml", "plugin.yaml"] as const;
const settleMs = 100;

/**
 * Does a work at once, and again soon after each change of what its author edits in a folder, until SIGINT; then the exit
 * code is 0. What fails is told, and waited out.
 */
export async function repeatOnChange(folder: string, work: () => Promise<void>): Promise<void> {
  requireFolder(folder);
  let changed: () => void = () => undefined;
  const tree = new TreeWatch({
    paths: edited.map((name) => join(folder, name)),
    onChange: () => changed(),
    onBlind: (path) => process.stderr.write(`gateway: changes of \`${path}\` go unseen\n`),
  });
  const stopped = new Promise<"stopped">((resolve) => process.once("SIGINT", () => resolve("stopped")));
  // What is watched may all go away, and come again.
  const keepAlive = setInterval(() => undefined, 2 ** 30);
  for (let done = "", next = ""; next !== "stopped"; ) {
    const change = new Promise<"changed">((resolve) => {
      changed = () => setTimeout(() => resolve("changed"), settleMs);
    });
    // Before the work reads: what changes after this is heard of again.
    tree.refresh();
    const content = contentOf(folder);
    if (content !== done) {
      await attempt(work);
      process.stderr.write("gateway: waiting for a change; Ctrl-C ends it\n");
    }
    done = content;
    next = await Promise.race([change, stopped]);
  }
  clearInterval(keepAlive);
  tree.close();
  process.exitCode = 0;
}

/** Nobody tells when a folder comes that is not there. */
function requireFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  throw new GatewayError("EXTENSION_INVALID", `expected a folder to watch, got \`${folder}\``);
}

async function attempt(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (cause) {
    process.stderr.write(`gateway: ${GatewayError.from(cause).message}\n`);
  }
}

/** Changes with what an author edited: the digest that a build writes into a manifest is none of it. */
function contentOf(folder: string): string {
  const hash = createHash("sha256");
  for (const name of edited) {
    for (const path of filesAt(join(folder, name))) {
      const text = textOf(path);
      hash.update(JSON.stringify([path, name === "plugin.yaml" ? text.replace(/^digest:.*$/m, "") : text]));
    }
  }
  return hash.digest("hex");
}

/** Empty where the file went away meanwhile: that is a change of its own. */
function textOf(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}

/** The file itself, or the files below a folder; none where there is nothing. */
function filesAt(path: string): readonly string[] {
  try {
    return readdirSync(path, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .toSorted();
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOTDIR" ? [path] : [];
  }
}
