const grainBytes = 4_096;

/** A stretch of memory, as it is before each call: bytes that are kept from `from` on, or nothing but 0. */
interface Stretch {
  readonly at: number;
  readonly length: number;
  readonly from: number | undefined;
}

/** The state of an instance before each call: plain data, whose bytes threads share. */
export interface Snapshot {
  /** In the order in which the globals were given. */
  readonly globals: readonly (number | bigint)[];
  readonly memoryBytes: number;
  /** All of the memory, from its beginning to its end. */
  readonly stretches: readonly Stretch[];
  readonly bytes: Uint8Array;
}

/** What the snapshot is of: an instance's memory, where it has one, and its globals that can change. */
export interface InstanceState {
  readonly memory: WebAssembly.Memory | undefined;
  readonly globals: readonly WebAssembly.Global[];
}

export function takeSnapshot({ memory, globals }: InstanceState): Snapshot {
  const now = new Uint8Array(memory?.buffer ?? new ArrayBuffer(0));
  const stretches = stretchesOf(now);
  const kept = stretches.filter(({ from }) => from !== undefined);
  const bytes = new Uint8Array(new SharedArrayBuffer(kept.reduce((sum, { length }) => sum + length, 0)));
  for (const { at, length, from } of kept) bytes.set(now.subarray(at, at + length), from);
  return { globals: globals.map(({ value }) => value), memoryBytes: now.length, stretches, bytes };
}

/** Puts an instance's globals and as much memory as there was before each call back to what they were. */
export function restoreSnapshot({ globals, stretches, bytes }: Snapshot, state: InstanceState): void {
  for (let index = 0; index < globals.length; index++) {
    const global = state.globals[index];
    const value = globals[index];
    if (global !== undefined && value !== undefined) global.value = value;
  }
  if (state.memory === undefined) return;
  const memory = new Uint8Array(state.memory.buffer);
  for (const { at, length, from } of stretches) {
    if (from === undefined) memory.fill(0, at, at + length);
    else memory.set(bytes.subarray(from, from + length), at);
  }
}

function stretchesOf(memory: Uint8Array): Stretch[] {
  const stretches: Stretch[] = [];
  let kept = 0;
  for (let at = 0; at < memory.length; at += grainBytes) {
    const isKept = memory.subarray(at, at + grainBytes).some((byte) => byte !== 0);
    const last = stretches.at(-1);
    if (last !== undefined && (last.from !== undefined) === isKept) {
      stretches[stretches.length - 1] = { ...last, length: last.length + grainBytes };
    } else {
      stretches.push({ at, length: grainBytes, from: isKept ? kept : undefined });
    }
    if (isKept) kept += grainBytes;
  }
  return stretches;
}
