import { type FSWatcher, readdirSync, watch } from "node:fs";
import { basename, dirname, join } from "node:path";

const mostFolders = 256;

export interface TreeWatchOptions {
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
  for (let folder = waiting.shift(); folder !== undefined && found.length < mostFolders; folder = waiting.shift()) {
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
