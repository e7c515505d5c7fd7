import { readFile } from "node:fs/promises";
import { GatewayError } from "../action/error.ts";
import { isJsonObject, type Json } from "../action/json.ts";
import { parseStrictJson } from "../action/strict-json.ts";

/** The newest metadata of a TUF repository that an update has verified. */
export interface TufState {
  /** The repository's URL, without a slash at its end. */
  readonly url: string;
  /** `sha256:<hex>` of the root metadata that the first update began with. */
  readonly firstRoot: string;
  /** The metadata as text, byte for byte. */
  readonly root: string;
  readonly timestamp: string;
  readonly snapshot: string;
}

const bounds = { depth: 2, nodes: 16, stringLength: 4_194_304, reader: "exact" } as const;

/** Returns the path of the state beside a trusted root. */
export function tufStatePath(file: string): string {
  return `${file}.tuf.json`;
}

/** Reads the state beside a trusted root; undefined where there is none. Throws STATE_UNUSABLE where it cannot be read. */
export async function readTufState(file: string): Promise<TufState | undefined> {
  const path = tufStatePath(file);
  let bytes: Buffer;
  try {
    bytes = await readFile(path);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    throw new GatewayError("STATE_UNUSABLE", `\`${path}\` cannot be read: ${code ?? String(cause)}`, { cause });
  }
  const state = parse(bytes);
  if (state !== undefined) return state;
  throw new GatewayError("STATE_UNUSABLE", `\`${path}\`: expected the state of \`gateway trust update\`; restore it`);
}

/** Returns the bytes of a state. */
export function encodeTufState({ url, firstRoot, root, timestamp, snapshot }: TufState): Buffer {
  const members = { state_version: 1, url, first_root: firstRoot, root, timestamp, snapshot };
  return Buffer.from(`${JSON.stringify(members, null, 2)}\n`);
}

function parse(bytes: Buffer): TufState | undefined {
  let value: Json;
  try {
    value = parseStrictJson(bytes, bounds);
  } catch {
    return undefined;
  }
  if (!isJsonObject(value) || value.state_version !== 1) return undefined;
  const { url, first_root: firstRoot, root, timestamp, snapshot } = value;
  if (typeof url !== "string" || typeof firstRoot !== "string" || typeof root !== "string") return undefined;
  if (typeof timestamp !== "string" || typeof snapshot !== "string") return undefined;
  return { url, firstRoot, root, timestamp, snapshot };
}
