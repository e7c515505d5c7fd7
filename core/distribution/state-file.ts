import { readFile } from "node:fs/promises";
import { GatewayError } from "../action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import { type JsonBounds, parseStrictJson } from "../action/strict-json.ts";

interface StateFile<State> {
  readonly path: string;
  readonly bounds: JsonBounds;
  /** Returns undefined for an object that is no such state. */
  readonly read: (object: JsonObject) => State | undefined;
  /** The file in words, for the error. */
  readonly noun: string;
}

/** Reads what an earlier command wrote; undefined where there is no such file. Throws STATE_UNUSABLE where it cannot be read. */
export async function readStateFile<State>({ path, bounds, read, noun }: StateFile<State>): Promise<State | undefined> {
  let bytes: Buffer;
  try {
    bytes = await readFile(path);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    throw new GatewayError("STATE_UNUSABLE", `\`${path}\` cannot be read: ${code ?? String(cause)}`, { cause });
  }
  const object = parseObject(bytes, bounds);
  const state = object && read(object);
  if (state !== undefined) return state;
  throw new GatewayError("STATE_UNUSABLE", `\`${path}\`: expected ${noun}; restore it`);
}

function parseObject(bytes: Buffer, bounds: JsonBounds): JsonObject | undefined {
  let value: Json;
  try {
    value = parseStrictJson(bytes, bounds);
  } catch {
    return undefined;
  }
  return isJsonObject(value) ? value : undefined;
}
