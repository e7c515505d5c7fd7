import { constants } from "node:fs";
import { type FileHandle, mkdir, open } from "node:fs/promises";
import { join } from "node:path";
import { parseNote } from "../tree/checkpoint.ts";
import { checkLog, maxNote, type Witness } from "./witness.ts";

const heading = /^# .*\n/m;

/**
 * A folder on other storage, with a file for each log: `<log>.notes`, one note after the other, each below a line
 * `# <time>`. Files only grow.
 */
export class FileWitness implements Witness {
  readonly name: string;
  readonly #folder: string;

  constructor(name: string, folder: string) {
    this.name = name;
    this.#folder = folder;
  }

  /** Durable when it resolves. */
  async append(log: string, note: string, time: string): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const file = await open(this.#path(log), constants.O_RDWR | constants.O_APPEND | constants.O_CREAT, 0o600);
    try {
      // What a crash cut off stays a line of its own.
      const gap = (await endsInLine(file)) ? "" : "\n";
      await file.writeFile(`${gap}# ${time}\n${note}`);
      await file.sync();
    } finally {
      await file.close();
    }
  }

  async latest(log: string): Promise<string | undefined> {
    const text = await readTail(this.#path(log));
    if (text === undefined) return undefined;
    return text.split(heading).findLast((each) => parseNote(each) !== undefined);
  }

  #path(log: string): string {
    checkLog(log);
    return join(this.#folder, `${log}.notes`);
  }
}

async function endsInLine(file: FileHandle): Promise<boolean> {
  const { size } = await file.stat();
  const last = Buffer.alloc(1);
  if (size > 0) await file.read(last, 0, 1, size - 1);
  return size === 0 || last.toString() === "\n";
}

/** Twice the longest note holds a whole one, whatever was cut off after it. */
async function readTail(path: string): Promise<string | undefined> {
  let file: FileHandle;
  try {
    file = await open(path, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  try {
    const { size } = await file.stat();
    const start = Math.max(0, size - 2 * maxNote);
    const tail = Buffer.alloc(size - start);
    const { bytesRead } = await file.read(tail, 0, tail.length, start);
    return tail.toString("utf8", 0, bytesRead);
  } finally {
    await file.close();
  }
}
