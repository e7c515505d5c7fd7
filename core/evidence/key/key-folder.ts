import { mkdir, open, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Random } from "../../action/id.ts";
import { SigningKey } from "../../action/signing-key.ts";
import { syncFolder } from "../../store/folder.ts";
import { WrappingKeyFolder, WrappingKeyMemory, type WrappingKeyStore } from "./wrapping-key.ts";

/** The private halves of the keys that sign checkpoints. */
export interface KeyStore {
  /** Creates a key. Durable when it resolves, before anything is signed with it. */
  create(): Promise<SigningKey>;
  /** The key of that id; undefined where there is none, or what is there is another key. */
  find(id: string): Promise<SigningKey | undefined>;
}

const seedBytes = 32;
const idPattern = /^[0-9a-f]{16}$/;

/** Keeps a copy of a new key file elsewhere: the key serves once this resolves. */
export type CopyKey = (path: string) => Promise<void>;

/** One file for each key in a folder (mode 0700): `<key id>.pem`, PKCS#8, mode 0600. */
export class KeyFolder implements KeyStore {
  readonly #path: string;
  readonly #random: Random;
  readonly #copy: CopyKey | undefined;

  constructor(path: string, random: Random, copy?: CopyKey) {
    this.#path = path;
    this.#random = random;
    this.#copy = copy;
  }

  async create(): Promise<SigningKey> {
    const key = SigningKey.fromSeed(this.#random(seedBytes));
    await mkdir(this.#path, { recursive: true, mode: 0o700 });
    const file = await open(this.#file(key.id), "wx", 0o600);
    try {
      await file.writeFile(key.toPem());
      await file.sync();
    } finally {
      await file.close();
    }
    await syncFolder(this.#path);
    await this.#copy?.(this.#file(key.id));
    return key;
  }

  async find(id: string): Promise<SigningKey | undefined> {
    const pem = idPattern.test(id) ? await readIfThere(this.#file(id)) : undefined;
    const key = pem === undefined ? undefined : parsePem(pem);
    return key?.id === id ? key : undefined;
  }

  #file(id: string): string {
    return join(this.#path, `${id}.pem`);
  }
}

/** Keys of a store in memory. */
class KeyMemory implements KeyStore {
  readonly #random: Random;
  readonly #keys = new Map<string, SigningKey>();

  constructor(random: Random) {
    this.#random = random;
  }

  async create(): Promise<SigningKey> {
    const key = SigningKey.fromSeed(this.#random(seedBytes));
    this.#keys.set(key.id, key);
    return key;
  }

  async find(id: string): Promise<SigningKey | undefined> {
    return this.#keys.get(id);
  }
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Undefined for a damaged file: the caller reports the missing key. */
function parsePem(pem: string): SigningKey | undefined {
  try {
    return SigningKey.fromPem(pem);
  } catch {
    return undefined;
  }
}

/** The signing keys of the chains, and the keys of their private fields. */
interface KeyStores {
  readonly keys: KeyStore;
  readonly wrappingKeys: WrappingKeyStore;
}

/** Opens the keys in a folder; null for keys in memory. */
export function openKeyStores(folder: string | null, random: Random, copy?: CopyKey): KeyStores {
  return folder === null
    ? { keys: new KeyMemory(random), wrappingKeys: new WrappingKeyMemory(random) }
    : { keys: new KeyFolder(folder, random, copy), wrappingKeys: new WrappingKeyFolder(folder, random, copy) };
}
