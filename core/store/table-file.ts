import { crc32c, maskCrc } from "./crc32c.ts";
import { DamageError, type FileWindow } from "./file-window.ts";
import { uncompressSnappy } from "./snappy.ts";
import { VarintReader } from "./varint.ts";

/** A block of a table: `size` bytes, after them its compression and its checksum. */
interface BlockPlace {
  readonly offset: number;
  readonly size: number;
}

/** Handles of the metaindex and the index, padding to 40 bytes, magic number. */
const footerBytes = 48;
const magic = Buffer.from("57fb808b247547db", "hex");
/** Compression, and the checksum of the block with it. */
const trailerBytes = 5;
/** Bytes that are read at once of a block that is larger. */
const pieceBytes = 524_288;
/** The tail of a table that is read at once: footer, index and filter of one of usual size. */
const tailBytes = 65_536;
/** Bytes of the largest index. LevelDB begins a new table at two mebibytes. */
const maxIndexBytes = 67_108_864;

/**
 * Checks a table: its footer, index, metaindex and filter, and with `data` every other block. Throws DamageError at the
 * first block whose checksum does not fit, and where the blocks do not fill the file: each byte but the footer's padding
 * is under a checksum, or says where one is.
 */
export async function checkTableFile(file: FileWindow, data: boolean): Promise<void> {
  const tail = Math.min(tailBytes, file.size);
  await file.bytes(file.size - tail, tail);
  const { metaindex, index } = await readFooter(file);
  const blocks = parsePlaces(await readBlock(file, index), index.offset);
  const filters = parsePlaces(await readBlock(file, metaindex), metaindex.offset);
  checkOrder(file, [...blocks, ...filters, metaindex, index]);
  for (const place of [...filters, ...(data ? blocks : [])]) await checkBlock(file, place);
}

async function readFooter(file: FileWindow): Promise<{ readonly metaindex: BlockPlace; readonly index: BlockPlace }> {
  const start = file.size - footerBytes;
  if (start < 0) throw new DamageError(0, "the file is too short for a table");
  const footer = await file.bytes(start, footerBytes);
  if (!footer.subarray(footerBytes - magic.length).equals(magic)) {
    throw new DamageError(file.size - magic.length, "the magic number of a table is missing");
  }
  const reader = new VarintReader(footer.subarray(0, footerBytes - magic.length), start, "the footer of a table");
  return { metaindex: readPlace(reader), index: readPlace(reader) };
}

/** Throws DamageError unless the blocks follow one another from the start of the file to the footer. */
function checkOrder(file: FileWindow, places: readonly BlockPlace[]): void {
  let end = 0;
  for (const { offset, size } of places) {
    if (offset !== end) throw new DamageError(end, `expected a block at byte ${end}, got one at ${offset}`);
    end = offset + size + trailerBytes;
  }
  if (end !== file.size - footerBytes) throw new DamageError(end, "expected the footer after the index");
}

/** Throws DamageError unless the block has its checksum. Returns its compression. */
async function checkBlock(file: FileWindow, { offset, size }: BlockPlace): Promise<number> {
  let crc = 0;
  let at = 0;
  // A block holds at least one entry, of any size.
  for (; size - at > pieceBytes; at += pieceBytes) crc = crc32c(await file.bytes(offset + at, pieceBytes), crc);
  const rest = await file.bytes(offset + at, size - at + trailerBytes);
  const sum = crc32c(rest.subarray(0, rest.length - 4), crc);
  if (rest.readUInt32LE(rest.length - 4) !== maskCrc(sum)) {
    throw new DamageError(offset, "the checksum of a block does not fit");
  }
  return rest[rest.length - trailerBytes] as number;
}

/** Returns the content of a block whose checksum fits. */
async function readBlock(file: FileWindow, place: BlockPlace): Promise<Buffer> {
  const { offset, size } = place;
  if (size > maxIndexBytes) throw new DamageError(offset, `expected an index of at most ${maxIndexBytes} bytes`);
  const compression = await checkBlock(file, place);
  const bytes = await file.copy(offset, size);
  const content = compression === 0 ? bytes : compression === 1 ? uncompressSnappy(bytes, maxIndexBytes) : undefined;
  if (content === undefined) throw new DamageError(offset, "the index of a table cannot be uncompressed");
  return content;
}

/** Returns the places that an index names, in the order of its keys. `offset` is its own, for errors. */
function parsePlaces(index: Buffer, offset: number): readonly BlockPlace[] {
  const restarts = index.length < 4 ? Number.POSITIVE_INFINITY : index.readUInt32LE(index.length - 4);
  const end = index.length - 4 * (restarts + 1);
  if (end < 0) throw new DamageError(offset, "the index of a table is too short");
  const reader = new VarintReader(index.subarray(0, end), offset, "the index of a table");
  const places: BlockPlace[] = [];
  while (!reader.isAtEnd) places.push(readEntry(reader));
  return places;
}

function readPlace(reader: VarintReader): BlockPlace {
  return { offset: reader.next(), size: reader.next() };
}

/** Reads an entry of an index: a key, of which a part is that of the key before, and a place. */
function readEntry(reader: VarintReader): BlockPlace {
  reader.next(); // bytes shared with the key before
  const keyBytes = reader.next();
  const placeBytes = reader.next();
  reader.skip(keyBytes);
  const end = reader.at + placeBytes;
  const place = readPlace(reader);
  if (reader.at !== end) throw reader.fault();
  return place;
}
