import { artifactError, quoteForeign } from "./file-name.ts";

const block = 512;
const octal = /^[0-7]{1,11}$/;
const linkTypes: Readonly<Record<string, string>> = {
  "1": "a hard link",
  "2": "a symbolic link",
  "3": "a device",
  "4": "a device",
  "5": "a folder",
  "6": "a pipe",
};

/** One entry of a tar archive. */
export interface TarEntry {
  readonly name: string;
  readonly bytes: Buffer;
}

/**
 * Reads a tar archive as npm writes it: ustar headers of plain files, then blocks of zeros. Whatever else the format knows
 * is refused, since readers disagree about it: links, folders, devices, extended headers, sizes that are not octal. At most
 * `maxFiles` entries, each of at most `maxBytesOf(name)` bytes. Throws ARTIFACT_REFUSED.
 */
export function* readTar(tar: Buffer, maxFiles: number, maxBytesOf: (name: string) => number): Generator<TarEntry> {
  let at = 0;
  for (let count = 0; ; count++) {
    const header = blockAt(tar, at);
    if (isEmpty(header)) break;
    if (count === maxFiles) throw artifactError(`expected at most ${maxFiles} files in the tarball, got more`);
    const { name, size } = readHeader(header);
    const most = maxBytesOf(name);
    if (size > most) throw artifactError(`${quoteForeign(name)}: expected at most ${most} bytes, got ${size}`);
    const start = at + block;
    const bytes = tar.subarray(start, start + size);
    if (bytes.length < size) throw endsEarly();
    yield { name, bytes };
    at = start + Math.ceil(size / block) * block;
  }
  if (!isEmpty(blockAt(tar, at + block)) || !isEmpty(tar.subarray(at)))
    throw artifactError("expected nothing after the end of the tarball, got more");
}

function readHeader(header: Buffer): { readonly name: string; readonly size: number } {
  if (textOf(header, 257, 5) !== "ustar" || numberOf(header, 148, 8) !== checksumOf(header))
    throw artifactError("expected a tarball as npm packs it, got something else");
  const prefix = textOf(header, 345, 155);
  const name = `${prefix}${prefix === "" ? "" : "/"}${textOf(header, 0, 100)}`;
  const type = textOf(header, 156, 1);
  if (type !== "0" && type !== "")
    throw artifactError(`${quoteForeign(name)}: expected a plain file, got ${linkTypes[type] ?? "another entry"}`);
  const size = numberOf(header, 124, 12);
  if (size === undefined) throw artifactError(`${quoteForeign(name)}: expected a size in octal digits`);
  return { name, size };
}

function blockAt(tar: Buffer, at: number): Buffer {
  const header = tar.subarray(at, at + block);
  if (header.length === block) return header;
  throw endsEarly();
}

function endsEarly(): Error {
  return artifactError("expected a whole tarball, got one that ends early");
}

/** Sums the bytes of a header with its checksum read as spaces. */
function checksumOf(header: Buffer): number {
  return header.reduce((sum, byte, index) => sum + (index >= 148 && index < 156 ? 0x20 : byte), 0);
}

function numberOf(header: Buffer, start: number, length: number): number | undefined {
  const text = textOf(header, start, length).trim();
  return octal.test(text) ? Number.parseInt(text, 8) : undefined;
}

function textOf(header: Buffer, start: number, length: number): string {
  const field = header.subarray(start, start + length);
  const end = field.indexOf(0);
  return field.subarray(0, end === -1 ? length : end).toString("utf8");
}

function isEmpty(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0);
}
