import { Breach } from "./breach.ts";

/** Files of an archive by name. */
export type TarFiles = ReadonlyMap<string, Uint8Array>;

const block = 512;
const nameShape = /^[A-Za-z][A-Za-z0-9.-]{0,98}$/;
/** The size field holds eleven octal digits. */
const largestFile = 0o77777777777;

/**
 * A POSIX ustar archive in the one form this project writes: flat, sorted by name, mode 0644, owner 0, time 0. Equal
 * files make equal bytes. Throws TypeError for a name that is not a plain file name.
 */
export function packTar(files: TarFiles): Buffer {
  const names = [...files.keys()].sort();
  const parts = names.flatMap((name) => {
    const content = files.get(name) as Uint8Array;
    return [header(name, content.length), content, Buffer.alloc(padding(content.length))];
  });
  return Buffer.concat([...parts, Buffer.alloc(2 * block)]);
}

/**
 * Reads an archive that `packTar` could have written, and no other. Links, folders, paths, second entries, foreign
 * owners, hidden padding and trailing bytes all make other bytes than these. Throws Breach `malformed`.
 */
export function readTar(archive: Uint8Array): TarFiles {
  const bytes = Buffer.from(archive.buffer, archive.byteOffset, archive.byteLength);
  const files = new Map<string, Uint8Array>();
  let at = 0;
  let before = "";
  while (at < bytes.length && bytes[at] !== 0) {
    const head = bytes.subarray(at, at + block);
    const { name, size } = readHeader(head);
    const end = at + block + size;
    const next = end + padding(size);
    if (name <= before || next > bytes.length || !isZero(bytes.subarray(end, next))) throw new Breach("malformed");
    files.set(name, bytes.subarray(at + block, end));
    before = name;
    at = next;
  }
  const tail = bytes.subarray(at);
  if (tail.length !== 2 * block || !isZero(tail)) throw new Breach("malformed");
  return files;
}

function readHeader(head: Buffer): { readonly name: string; readonly size: number } {
  const name = head.toString("latin1", 0, 100).replace(/\0+$/, "");
  const digits = head.toString("latin1", 124, 135);
  if (!nameShape.test(name) || !/^[0-7]{11}$/.test(digits)) throw new Breach("malformed");
  const size = Number.parseInt(digits, 8);
  if (!head.equals(header(name, size))) throw new Breach("malformed");
  return { name, size };
}

function header(name: string, size: number): Buffer {
  if (!nameShape.test(name)) throw new TypeError(`tar: expected a plain file name, got \`${name}\``);
  if (size > largestFile) throw new TypeError(`tar: expected at most ${largestFile} bytes, got ${size}`);
  const head = Buffer.alloc(block);
  head.write(name, 0, "latin1");
  head.write("0000644\0" + "0000000\0" + "0000000\0", 100, "latin1");
  head.write(`${octal(size, 11)}\0${octal(0, 11)}\0`, 124, "latin1");
  head.write("        0", 148, "latin1");
  head.write("ustar\0" + "00", 257, "latin1");
  const sum = head.reduce((total, byte) => total + byte, 0);
  head.write(`${octal(sum, 6)}\0 `, 148, "latin1");
  return head;
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, "0");
}

function padding(size: number): number {
  return (block - (size % block)) % block;
}

function isZero(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0);
}
