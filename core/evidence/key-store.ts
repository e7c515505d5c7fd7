import type { Random } from "../kernel/port.ts";
import { KeyFolder, KeyMemory, type KeyStore } from "./key-folder.ts";
import { WrappingKeyFolder, WrappingKeyMemory, type WrappingKeyStore } from "./wrapping-key-folder.ts";

/** The keys of the chains, and of what they hide. */
export interface KeyStores {
  readonly keys: KeyStore;
  readonly wrappingKeys: WrappingKeyStore;
}

/** Keys in a folder; null for keys that go with the process. */
export function openKeyStores(folder: string | null, random: Random): KeyStores {
  return folder === null
    ? { keys: new KeyMemory(random), wrappingKeys: new WrappingKeyMemory(random) }
    : { keys: new KeyFolder(folder, random), wrappingKeys: new WrappingKeyFolder(folder, random) };
}
