import { crc32c, maskCrc } from "./crc32c.ts";
import { DamageError, type FileWindow } from "./file-window.ts";

/** LevelDB's format of logs and manifests: records in fragments, none across a block; the rest of a block is left empty. */
const blockBytes = 32_768;
/** Checksum (4 bytes), length (2 bytes), type. */
const headerBytes = 7;
const [full, first, middle, last] = [1, 2, 3, 4] as const;

/** Called with each piece of a record, and with null when it is complete. A piece is valid during the call. */
type OnPiece = (piece: Buffer | null, offset: number) => void;

/** The kinds of logs, each with the zeros in which a sound record of it may end. */
const soundZeros = {
  /** A batch ends with a key or a value; with the length of the value where that is empty. */
  batches: 1,
  /** A change ends with the number of an entry: 7 bytes, the lowest first. */
  changes: 7,
} as const;

/**
 * Checks every record of a log. Throws DamageError at the first whose checksum does not fit, or that is out of order.
 * An end that was cut short, or never reached the disk and reads as zeros, is what a crash leaves: the log ends before it.
 */
export async function checkLogFile(
  file: FileWindow,
  kind: keyof typeof soundZeros,
  onPiece: OnPiece = () => {},
): Promise<void> {
  let isInside = false;
  for (let start = 0; start < file.size; start += blockBytes) {
    const block = await file.bytes(start, Math.min(blockBytes, file.size - start));
    for (let at = 0; at + headerBytes <= block.length; ) {
      const { type, end, isSound } = readFragment(block, at);
      if (!isSound) {
        if (await isTorn(file, kind, start, at)) return;
        throw new DamageError(start + at, "the checksum of a log record does not fit");
      }
      if (isInside !== (type === middle || type === last)) {
        throw new DamageError(start + at, "a part of a log record is missing");
      }
      isInside = type === first || type === middle;
      onPiece(block.subarray(at + headerBytes, end), start + at);
      if (!isInside) onPiece(null, start + at);
      at = end;
    }
  }
}

interface Fragment {
  readonly type: number;
  /** Offset after it in its block, as its length says. */
  readonly end: number;
  readonly isSound: boolean;
}

function readFragment(block: Buffer, at: number): Fragment {
  const end = at + headerBytes + block.readUInt16LE(at + 4);
  const type = block[at + 6] as number;
  const isWhole = type >= full && type <= last && end <= block.length;
  return { type, end, isSound: isWhole && isSum(block, at, block.subarray(at + 6, end)) };
}

/** Returns whether the checksum of the fragment at `at` is that of `bytes`. */
function isSum(block: Buffer, at: number, bytes: Uint8Array): boolean {
  return block.readUInt32LE(at) === maskCrc(crc32c(bytes));
}

/** Returns whether the unsound fragment at `at` of the block at `start` is how a crash leaves the end of a file. */
async function isTorn(file: FileWindow, kind: keyof typeof soundZeros, start: number, at: number): Promise<boolean> {
  const zeros = await countZeros(file);
  const block = await file.bytes(start, Math.min(blockBytes, file.size - start));
  const { end } = readFragment(block, at);
  const isZeroed = zeros > soundZeros[kind] || (zeros === 1 && isLastByteLost(block.subarray(at)));
  if (isZeroed && file.size - zeros < start + end) return true;
  const isCut = block.length < end && end <= blockBytes && start + block.length === file.size;
  return isCut && !isSoundBut(block.subarray(at));
}

/** Bytes at the end of the file that are zero. */
async function countZeros(file: FileWindow): Promise<number> {
  let zeros = 0;
  while (zeros < file.size) {
    const length = Math.min(blockBytes, file.size - zeros);
    const bytes = await file.bytes(file.size - zeros - length, length);
    const more = length - 1 - bytes.findLastIndex((byte) => byte !== 0);
    zeros += more;
    if (more < length) break;
  }
  return zeros;
}

/** Returns whether the last byte alone is wrong. */
function isLastByteLost(rest: Buffer): boolean {
  const tried = Buffer.from(rest);
  for (let byte = 1; byte < 256; byte++) {
    tried[tried.length - 1] = byte;
    if (isSum(tried, 0, tried.subarray(6))) return true;
  }
  return false;
}

/** Returns whether only the length of the first fragment is wrong: it ends with `rest`, or another follows. */
function isSoundBut(rest: Buffer): boolean {
  if (isSum(rest, 0, rest.subarray(6))) return true;
  for (let at = headerBytes; at + headerBytes <= rest.length; at++) if (readFragment(rest, at).isSound) return true;
  return false;
}
