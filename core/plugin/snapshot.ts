const chunkBytes = 4_096;

/** A range of memory before each call: bytes stored in the snapshot at `from`, or zeros where `from` is undefined. */
interface MemoryRange {
  readonly at: number;
  readonly length: number;
  readonly from: number | undefined;
}

/** The state of an instance before each call: plain data whose bytes threads share. */
export interface Snapshot {
  /** In the order of the instance's globals. */
  readonly globals: readonly (number | bigint)[];
  readonly memoryBytes: number;
  /** Covers the whole memory. */
  readonly ranges: readonly MemoryRange[];
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
  const ranges = rangesOf(now);
  const kept = ranges.filter(({ from }) => from !== undefined);
  const bytes = new Uint8Array(new SharedArrayBuffer(kept.reduce((sum, { length }) => sum + length, 0)));
  for (const { at, length, from } of kept) bytes.set(now.subarray(at, at + length), from);
  return { globals: globals.map(({ value }) => value), memoryBytes: now.length, ranges, bytes };
}

/** Restores an instance's globals and the snapshot's memory. */
export function restoreSnapshot({ globals, ranges, bytes }: Snapshot, state: InstanceState): void {
  for (let index = 0; index < globals.length; index++) {
    const global = state.globals[index];
    const value = globals[index];
    if (global !== undefined && value !== undefined) global.value = value;
  }
  if (state.memory === undefined) return;
  const memory = new Uint8Array(state.memory.buffer);
  for (const { at, length, from } of ranges) {
    if (from === undefined) memory.fill(0, at, at + length);
    else memory.set(bytes.subarray(from, from + length), at);
  }
}

function rangesOf(memory: Uint8Array): MemoryRange[] {
  const ranges: MemoryRange[] = [];
  let kept = 0;
  for (let at = 0; at < memory.length; at += chunkBytes) {
    const isKept = memory.subarray(at, at + chunkBytes).some((byte) => byte !== 0);
    const last = ranges.at(-1);
    if (last !== undefined && (last.from !== undefined) === isKept) {
      ranges[ranges.length - 1] = { ...last, length: last.length + chunkBytes };
    } else {
      ranges.push({ at, length: chunkBytes, from: isKept ? kept : undefined });
    }
    if (isKept) kept += chunkBytes;
  }
  return ranges;
}
