import type { BatchOperation } from "../../action/commit-hook.ts";
import { type PackedValues, packValues, unpackValues } from "../../store/packed-value.ts";
import { encodeBytes, encodeValue } from "../../store/value-encoding.ts";
import { type PrivateEntry, sealEntry } from "../private/private-field.ts";
import type { SessionSummary } from "./session-record.ts";

/** A value of a batch. The text of a summary and the bytes of an entry are made once the batch is closed. */
export type BatchValue = string | SessionSummary | PrivateEntry;

/** A write of a batch: only the last value of a key is made. */
export type BatchWrite =
  | BatchOperation
  | { readonly type: "put"; readonly key: string; readonly value: Exclude<BatchValue, string> };

/** Values for another thread: texts, which are cheaper to hand over than objects. */
export interface EncodingOrder {
  /** Bytes stand for the text of an entry: in memory that both threads share, a large one need not be copied. */
  readonly texts: readonly (string | Uint8Array)[];
  /** The places in `texts` where the three of an entry begin. */
  readonly entries: readonly number[];
}

export function encodingOrder(values: Iterable<BatchValue | null>): EncodingOrder {
  const texts: (string | Uint8Array)[] = [];
  const entries: number[] = [];
  for (const value of values) {
    if (typeof value === "string") texts.push(value);
    else if (value !== null && "secret" in value) {
      entries.push(texts.length);
      texts.push(value.secret, value.place, value.text);
    } else if (value !== null) texts.push(JSON.stringify(value));
  }
  return { texts, entries };
}

/** Characters of private fields, or bytes of a value, from which on a record is large. */
export const minLarge = 262_144;

/** Encoded values, in memory of their own that can be handed to another thread. */
export interface EncodedValues {
  /** Without the large ones, which come one by one and are not copied. */
  readonly packed: PackedValues;
  /** In the order of those that `packed` lacks. */
  readonly large: readonly Uint8Array[];
}

/** Returns the bytes of the values, in their order, as the store's own encoding makes them of their texts. */
export function encodeOrder({ texts, entries }: EncodingOrder): EncodedValues {
  const values: Uint8Array[] = [];
  let done = 0;
  for (let at = 0; at < texts.length; at++) {
    if (at === entries[done]) {
      done++;
      const [secret, place, text] = texts.slice(at, at + 3) as [string, string, PrivateEntry["text"]];
      values.push(encodeBytes(sealEntry({ secret, place, text }, 1)));
      at += 2;
    } else values.push(encodeValue(texts[at] as string));
  }
  return {
    packed: packValues(values.map((value) => (value.length < minLarge ? value : undefined))),
    large: values.filter(({ length }) => length >= minLarge),
  };
}

/** Returns the values in their order. */
export function takeEncoded({ packed, large }: EncodedValues): readonly Uint8Array[] {
  let next = 0;
  return unpackValues(packed).map((value) => value ?? (large[next++] as Uint8Array));
}
