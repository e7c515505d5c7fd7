import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { refuse } from "./content.ts";

/** Bytes of the longest line: the largest value that limits allow, encrypted, in base64, and its key. */
const longestLine = 402_653_184;
/** A file of another kind may have no end of line at all. */
const longestFirst = 65_536;
const chunkBytes = 262_144;
const newline = 0x0a;

/**
 * The lines of a file in order, as they are read, without their ends: some at a time, so that what reads them can let
 * others run. Holds one line and one chunk. Throws BACKUP_REFUSED for what is no regular file, for a line that is too
 * long, and where the last line does not end.
 */
export async function* readLines(path: string): AsyncGenerator<readonly Buffer[]> {
  const file = await openRegular(path);
  try {
    let rest: Buffer[] = [];
    let restBytes = 0;
    let longest = longestFirst;
    for (;;) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(chunkBytes));
      if (bytesRead === 0) break;
      const { lines, tail } = split(buffer.subarray(0, bytesRead), rest);
      if (lines.length > 0) [rest, restBytes, longest] = [[], 0, longestLine];
      rest.push(tail);
      restBytes += tail.length;
      if (restBytes > longest) throw refuse(`expected a line of at most ${longest} bytes, got a longer one`);
      if (lines.length > 0) yield lines;
    }
    if (restBytes > 0) throw refuse("its last line does not end: the file was cut");
  } finally {
    await file.close();
  }
}

/** The lines that end in `chunk`, the first of them begun in `rest`, and what comes after the last. */
function split(chunk: Buffer, rest: readonly Buffer[]): { readonly lines: readonly Buffer[]; readonly tail: Buffer } {
  const lines: Buffer[] = [];
  let start = 0;
  for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
    const line = chunk.subarray(start, end);
    lines.push(lines.length === 0 && rest.length > 0 ? Buffer.concat([...rest, line]) : line);
    start = end + 1;
  }
  return { lines, tail: chunk.subarray(start) };
}

/** A link, a pipe or a device is no backup: the first leads elsewhere, the others may never end. */
async function openRegular(path: string): Promise<FileHandle> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    (cause: NodeJS.ErrnoException) => {
      throw refuse(
        cause.code === "ELOOP" ? `\`${path}\` is a symbolic link` : `\`${path}\` cannot be read: ${cause.code}`,
        cause,
      );
    },
  );
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw refuse(`expected \`${path}\` to be a file`);
}
