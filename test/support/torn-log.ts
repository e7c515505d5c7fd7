import { open, readdir, stat, truncate } from "node:fs/promises";
import { join } from "node:path";

/** How a write that the machine did not finish leaves a file. */
export type Tear = "truncated" | "zeroed";

/** Tears at most the last `most` bytes off the newest log of the store in `dir`; says what was done. */
export async function tearNewestLog(dir: string, tear: Tear, most: number): Promise<string> {
  const log = await newestLog(dir);
  const { size } = await stat(log);
  const length = Math.max(0, size - 1 - Math.floor(Math.random() * most));
  if (tear === "truncated") await truncate(log, length);
  else await zero(log, length, size);
  return `${log} of ${size} bytes ${tear} from ${length}`;
}

/** The log that the store wrote last. */
export async function newestLog(dir: string): Promise<string> {
  const state = join(dir, "state");
  const log = (await readdir(state))
    .filter((name) => name.endsWith(".log"))
    .sort()
    .at(-1);
  if (log === undefined) throw new Error("expected a log in the store");
  return join(state, log);
}

async function zero(path: string, from: number, to: number): Promise<void> {
  const file = await open(path, "r+");
  try {
    await file.write(Buffer.alloc(to - from), 0, to - from, from);
  } finally {
    await file.close();
  }
}
