import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { GatewayError } from "../kernel/error.ts";
import { TreeWatch } from "./tree-watch.ts";

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
