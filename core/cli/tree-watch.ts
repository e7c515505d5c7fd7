import { createHash } from "node:crypto";
import { type FSWatcher, readdirSync, readFileSync, statSync, watch } from "node:fs";
import { basename, dirname, join } from "node:path";
import { GatewayError } from "../action/error.ts";
import { say } from "./print.ts";

const maxFolders = 256;

interface TreeWatchOptions {
  /** Files, or folders with all their content. They need not exist yet. */
  readonly paths: readonly string[];
  readonly onChange: () => void;
  /** Called for each path that cannot be watched any more. */
  readonly onBlind: (path: string) => void;
}

/**
 * Watches paths and all below them for changes. Watches folders only: a watch on a file ends silently when another file is
 * renamed into its place, which is how editors and deployments write.
 */
export class TreeWatch {
  readonly #options: TreeWatchOptions;
  #watchers: readonly FSWatcher[] = [];

  constructor(options: TreeWatchOptions) {
    this.#options = options;
    this.refresh();
  }

  /** Finds the folders to watch again; to be called after each change, for new ones. */
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

  /** Watches one entry of a folder, or all of them where `name` is null. */
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

/** Returns a folder and those below it, at most 256; none for a file or a missing path. */
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
    return null; // a file, or gone by now: the watch of its parent covers it
  }
}

/** The entries that an author edits; other entries, such as the module, are written by tools. */
const edited = ["assembly", "rules", "tests", "data", "asconfig.json", "pack.yaml", "plugin.yaml"] as const;
const settleMs = 100;

/**
 * Runs `work` at once, and again soon after each change of the entries that an author edits, until SIGINT; then the exit
 * code is 0. Prints errors of `work` and goes on.
 */
export async function repeatOnChange(folder: string, work: () => Promise<void>): Promise<void> {
  requireFolder(folder);
  let changed: () => void = () => undefined;
  const tree = new TreeWatch({
    paths: edited.map((name) => join(folder, name)),
    onChange: () => changed(),
    onBlind: (path) => say(`changes of \`${path}\` cannot be watched`),
  });
  const stopped = new Promise<"stopped">((resolve) => process.once("SIGINT", () => resolve("stopped")));
  // All watched folders may be removed and created again.
  const keepAlive = setInterval(() => undefined, 2 ** 30);
  for (let done = "", next = ""; next !== "stopped"; ) {
    const change = new Promise<"changed">((resolve) => {
      changed = () => setTimeout(() => resolve("changed"), settleMs);
    });
    // Before the work reads: later changes are seen.
    tree.refresh();
    const content = contentOf(folder);
    if (content !== done) {
      await attempt(work);
      say("waiting for a change; Ctrl-C ends it");
    }
    done = content;
    next = await Promise.race([change, stopped]);
  }
  clearInterval(keepAlive);
  tree.close();
  process.exitCode = 0;
}

/** Throws EXTENSION_INVALID for a missing folder: its creation could not be watched. */
function requireFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  throw new GatewayError("EXTENSION_INVALID", `expected a folder to watch, got \`${folder}\``);
}

async function attempt(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (cause) {
    say(GatewayError.from(cause).message);
  }
}

/** Digests all that an author edits; leaves out the digest that a build writes into a manifest. */
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

/** Returns an empty text where the file is gone meanwhile, which is another change. */
function textOf(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}

/** Returns the file itself, or the files below a folder; none for a missing path. */
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
