import { BinaryReader, BinaryWriter } from "../../core/plugin/wasm/binary.ts";

/** The same module with an export of another name. */
export function renameExport(module: Uint8Array, from: string, to: string): Uint8Array {
  return rewriteSection(module, 7, (reader, writer) => {
    const count = reader.u32();
    writer.u32(count);
    for (let index = 0; index < count; index++) {
      const name = reader.name();
      writer.name(name === from ? to : name);
      writer.write([reader.byte()]);
      writer.u32(reader.u32());
    }
  });
}

/** The same module with a memory that begins with this many pages. */
export function beginWithPages(module: Uint8Array, pages: number): Uint8Array {
  return rewriteSection(module, 5, (_, writer) => {
    writer.write([1, 0]);
    writer.u32(pages);
  });
}

/** The same module with each of these pieces of code in place of another; the others must be there. */
export function replaceCode(
  module: Uint8Array,
  pieces: readonly (readonly [from: number[], to: number[]])[],
): Uint8Array {
  const left = new Set(pieces);
  const changed = rewriteSection(module, 10, (reader, writer) => {
    const count = reader.u32();
    writer.u32(count);
    for (let index = 0; index < count; index++) {
      let body = Buffer.from(reader.take(reader.u32()));
      for (const piece of pieces) {
        const [from, to] = piece;
        const at = body.indexOf(Buffer.from(from));
        if (at === -1) continue;
        left.delete(piece);
        body = Buffer.concat([body.subarray(0, at), Buffer.from(to), body.subarray(at + from.length)]);
      }
      writer.sized(body);
    }
  });
  if (left.size > 0) throw new TypeError("replaceCode: expected the code to be there");
  return changed;
}

function rewriteSection(
  module: Uint8Array,
  section: number,
  rewrite: (reader: BinaryReader, writer: BinaryWriter) => void,
): Uint8Array {
  const reader = new BinaryReader(module);
  const all = new BinaryWriter();
  all.write(reader.take(8));
  while (!reader.done) {
    const id = reader.byte();
    const bytes = reader.take(reader.u32());
    const changed = new BinaryWriter();
    if (id === section) rewrite(new BinaryReader(bytes), changed);
    else changed.write(bytes);
    all.section(id, changed);
  }
  return all.bytes.slice();
}
