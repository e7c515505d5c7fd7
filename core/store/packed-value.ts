/** Values as the store keeps them, one after another. */
export interface PackedValues {
  readonly bytes: Uint8Array;
  /** Bytes of each; −1 for one that is missing. */
  readonly lengths: Int32Array;
}

/** Puts values into one piece of memory, which can be handed to another thread. */
export function packValues(values: readonly (Uint8Array | undefined)[]): PackedValues {
  const lengths = Int32Array.from(values, (value) => value?.length ?? -1);
  const bytes = new Uint8Array(lengths.reduce((sum, length) => sum + Math.max(length, 0), 0));
  let at = 0;
  for (const value of values) {
    if (value === undefined) continue;
    bytes.set(value, at);
    at += value.length;
  }
  return { bytes, lengths };
}

/** Returns the values; undefined for one that is missing. */
export function unpackValues({ bytes, lengths }: PackedValues): (Uint8Array | undefined)[] {
  let at = 0;
  return Array.from(lengths, (length) => {
    if (length < 0) return undefined;
    at += length;
    return bytes.subarray(at - length, at);
  });
}
