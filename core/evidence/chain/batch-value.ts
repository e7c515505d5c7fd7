import type { BatchOperation } from "../../action/commit-hook.ts";
import { type PackedValues, packValues } from "../../store/packed-value.ts";
import { encodeBytes, encodeValue } from "../../store/value-encoding.ts";
import { type PrivateEntry, sealEntry } from "../private/private-field.ts";
import type { SessionSummary } from "./session-record.ts";

/**
 * A value of a batch. The text of a summary and the bytes of an entry are made once the batch is closed; bytes are written as they
 * are.
 */
export type BatchValue = string | SessionSummary | PrivateEntry | Uint8Array;

/** A write of a batch: only the last value of a key is made. */
export type BatchWrite =
  | BatchOperation
  | { readonly type: "put"; readonly key: string; readonly value: Exclude<BatchValue, string> };

/** Values for another thread: texts, which are cheaper to hand over than objects. */
export interface EncodingOrder {
  readonly texts: readonly string[];
  /** The places in `texts` where the three of an entry begin. */
  readonly entries: readonly number[];
}

/** Orders the values that are no bytes yet. */
export function encodingOrder(values: Iterable<BatchValue | null>): EncodingOrder {
  const texts: string[] = [];
  const entries: number[] = [];
  for (const value of values) {
    if (typeof value === "string") texts.push(value);
    else if (value === null || value instanceof Uint8Array) continue;
    else if ("secret" in value) {
      entries.push(texts.length);
      texts.push(value.secret, value.place, value.text);
    } else texts.push(JSON.stringify(value));
  }
  return { texts, entries };
}

/** Returns the bytes of the values, in their order, as the store's own encoding makes them of their texts. */
export function encodeOrder({ texts, entries }: EncodingOrder): PackedValues {
  const values: Uint8Array[] = [];
  let done = 0;
  for (let at = 0; at < texts.length; at++) {
    if (at === entries[done]) {
      done++;
      const [secret, place, text] = texts.slice(at, at + 3) as [string, string, string];
      values.push(encodeBytes(sealEntry({ secret, place, text }, 1)));
      at += 2;
    } else values.push(encodeValue(texts[at] as string));
  }
  return packValues(values);
}
