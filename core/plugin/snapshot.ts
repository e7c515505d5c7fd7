import { chunkBits, chunkShift, everyChunk, maxSpill } from "./wasm/write-mark.ts";

const chunkBytes = 1 << chunkShift;

/** The state of an instance before each call: plain data whose bytes threads share. */
export interface Snapshot {
  /** In the order of the instance's globals. */
  readonly globals: readonly (number | bigint)[];
  readonly memoryBytes: number;
  /** For each chunk of the memory, where its bytes are stored; undefined where they are zeros. */
  readonly chunks: readonly (number | undefined)[];
  readonly bytes: Uint8Array;
}

/** The mutable state of an instance: its memory, if it has one, and its mutable globals. */
export interface InstanceState {
  readonly memory: WebAssembly.Memory | undefined;
  readonly globals: readonly WebAssembly.Global[];
}

/** Copies the state of an instance. */
export function takeSnapshot({ memory, globals }: InstanceState): Snapshot {
  const now = new Uint8Array(memory?.buffer ?? new ArrayBuffer(0));
  let kept = 0;
  const chunks = Array.from({ length: now.length / chunkBytes }, (_, index) => {
    const at = index * chunkBytes;
    if (now.subarray(at, at + chunkBytes).every((byte) => byte === 0)) return undefined;
    kept += chunkBytes;
    return kept - chunkBytes;
  });
  const bytes = new Uint8Array(new SharedArrayBuffer(kept));
  for (const [index, from] of chunks.entries()) {
    if (from !== undefined) bytes.set(now.subarray(index * chunkBytes, (index + 1) * chunkBytes), from);
  }
  return { globals: globals.map(({ value }) => value), memoryBytes: now.length, chunks, bytes };
}

/** Restores an instance's globals, and of its memory the chunks that may have been written to: all, where not told. */
export function restoreSnapshot(snapshot: Snapshot, state: InstanceState, written = BigInt(everyChunk)): void {
  const { globals, chunks } = snapshot;
  for (let index = 0; index < globals.length; index++) {
    const global = state.globals[index];
    const value = globals[index];
    if (global !== undefined && value !== undefined) global.value = value;
  }
  if (state.memory === undefined) return;
  const memory = new Uint8Array(state.memory.buffer);
  const marks = [Number(BigInt.asIntN(32, written)), Number(BigInt.asIntN(32, written >> 32n))] as const;
  for (let index = 0; index < chunks.length; index++) {
    const bit = index % chunkBits;
    if (((marks[bit >> 5] ?? 0) & (1 << (bit & 31))) === 0) continue;
    restoreChunk(snapshot, memory, index, chunkBytes);
    restoreChunk(snapshot, memory, index + 1, maxSpill);
  }
}

/** Restores the first bytes of a chunk, where there is one. */
function restoreChunk({ chunks, bytes }: Snapshot, memory: Uint8Array, index: number, length: number): void {
  if (index >= chunks.length) return;
  const from = chunks[index];
  const at = index * chunkBytes;
  if (from === undefined) memory.fill(0, at, at + length);
  else memory.set(bytes.subarray(from, from + length), at);
}
