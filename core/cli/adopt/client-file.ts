import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open, readlink, rename, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { GatewayError } from "../../action/error.ts";
import { escapeHidden } from "../../action/visible-text.ts";
import { describeFileError } from "../../config/document.ts";

/** The configuration file of a client, as it was read. */
export interface ClientFile {
  /** Absolute. */
  readonly path: string;
  readonly bytes: Buffer;
  /** The same bytes as text, with a byte order mark where there is one. */
  readonly text: string;
  /** Permission bits. */
  readonly mode: number;
}

/** Some clients keep their history in the same file. */
const maxBytes = 16 * 1024 * 1024;

/**
 * Reads a client's configuration. Throws CONFIG_INVALID for what is not a regular file of at most 16 MiB of UTF-8, also for a
 * symbolic link: what a link in a project leads to is not the project's.
 */
export async function readClientFile(path: string): Promise<ClientFile> {
  const file = resolve(path);
  // Without O_NONBLOCK a pipe would be waited for.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const handle = await open(file, flags).catch((cause: NodeJS.ErrnoException) => refuseUnopened(file, cause));
  try {
    const { bytes, mode } = await readRegular(file, handle);
    return { path: file, bytes, text: decode(file, bytes), mode: mode & 0o777 };
  } finally {
    await handle.close();
  }
}

/** Returns the bytes of a file that `readClientFile` would read, whatever their encoding. Throws as it does. */
export async function readBytes(path: string): Promise<Buffer> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const handle = await open(path, flags).catch((cause: NodeJS.ErrnoException) => refuseUnopened(path, cause));
  try {
    return (await readRegular(path, handle)).bytes;
  } finally {
    await handle.close();
  }
}

/** Replaces a client's configuration in one step: a client that starts meanwhile reads the old content or the new. Durable. */
export async function replaceClientFile(path: string, content: Uint8Array, mode: number): Promise<void> {
  const next = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString("hex")}`);
  try {
    const handle = await open(next, "wx", mode);
    try {
      await handle.chmod(mode);
      await handle.writeFile(content);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(next, path);
  } catch (cause) {
    await rm(next, { force: true });
    const found = `expected to write \`${path}\`, got ${describeFileError(cause)}`;
    throw new GatewayError("CONFIG_INVALID", `${found}; check who may write to its folder, and run this again`, {
      cause,
    });
  }
}

async function readRegular(path: string, handle: FileHandle): Promise<{ bytes: Buffer; mode: number }> {
  const found = await handle.stat();
  if (!found.isFile()) throw invalidFile(path, "expected a regular file, got another kind of file");
  if (found.size > maxBytes) throw invalidFile(path, `expected at most ${maxBytes} bytes, got ${found.size}`);
  const bytes = await handle.readFile();
  // It may have grown since.
  if (bytes.length > maxBytes) throw invalidFile(path, `expected at most ${maxBytes} bytes, got more`);
  return { bytes, mode: found.mode };
}

async function refuseUnopened(path: string, cause: NodeJS.ErrnoException): Promise<never> {
  if (cause.code === "ELOOP") {
    const target = await readlink(path).catch(() => "another file");
    const next = `name the file itself, \`${escapeHidden(resolve(dirname(path), target))}\``;
    throw invalidFile(path, `expected a file, got a symbolic link; ${next}`);
  }
  throw invalidFile(
    path,
    `expected the configuration of a client, got ${describeFileError(cause)}; name one that you may read`,
  );
}

function decode(path: string, bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new GatewayError("CONFIG_INVALID", `\`${path}\`: expected UTF-8, got other bytes`, { cause });
  }
}

/** A fault of a client's configuration. */
export function invalidFile(path: string, text: string): GatewayError {
  return new GatewayError("CONFIG_INVALID", `\`${path}\`: ${text}`);
}
