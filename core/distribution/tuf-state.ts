import type { JsonObject } from "../action/json.ts";
import { readStateFile } from "./state-file.ts";

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
export function readTufState(file: string): Promise<TufState | undefined> {
  const noun = "the state of `gateway trust update`";
  return readStateFile({ path: tufStatePath(file), bounds, read: readMembers, noun });
}

/** Returns the bytes of a state. */
export function encodeTufState({ url, firstRoot, root, timestamp, snapshot }: TufState): Buffer {
  const members = { state_version: 1, url, first_root: firstRoot, root, timestamp, snapshot };
  return Buffer.from(`${JSON.stringify(members, null, 2)}\n`);
}

function readMembers(object: JsonObject): TufState | undefined {
  if (object.state_version !== 1) return undefined;
  const { url, first_root: firstRoot, root, timestamp, snapshot } = object;
  if (typeof url !== "string" || typeof firstRoot !== "string" || typeof root !== "string") return undefined;
  if (typeof timestamp !== "string" || typeof snapshot !== "string") return undefined;
  return { url, firstRoot, root, timestamp, snapshot };
}
