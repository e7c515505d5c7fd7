import { mkdir, open, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Random } from "../kernel/port.ts";
import { WrappingKey } from "./wrapping-key.ts";

/** The wrapping key of each chain. */
export interface WrappingKeyStore {
  /** A new key for a chain that has none. Durable when it resolves, before anything is sealed with it. */
  create(chain: string): Promise<WrappingKey>;
  /** The chain's key; undefined where there is none, or what is there is damaged or another chain's. */
  find(chain: string): Promise<WrappingKey | undefined>;
}

const chainPattern = /^[A-Za-z0-9_-]{1,64}$/;

/** One file for each chain in a folder (mode 0700): `<chain id>.wrap`, mode 0600. */
export class WrappingKeyFolder implements WrappingKeyStore {
  readonly #path: string;
  readonly #random: Random;

  constructor(path: string, random: Random) {
    this.#path = path;
    this.#random = random;
  }

  async create(chain: string): Promise<WrappingKey> {
    const key = WrappingKey.generate(this.#random);
    await mkdir(this.#path, { recursive: true, mode: 0o700 });
    const file = await open(this.#file(chain), "wx", 0o600);
    try {
      await file.writeFile(key.toText(chain));
      await file.sync();
    } finally {
      await file.close();
    }
    const folder = await open(this.#path, "r");
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
    return key;
  }

  async find(chain: string): Promise<WrappingKey | undefined> {
    try {
      return WrappingKey.parse(await readFile(this.#file(chain), "utf8"), chain);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  #file(chain: string): string {
    if (!chainPattern.test(chain)) throw new TypeError("WrappingKeyFolder: expected the id of a chain");
    return join(this.#path, `${chain}.wrap`);
  }
}

/** Wrapping keys of a store that forgets with the process. */
export class WrappingKeyMemory implements WrappingKeyStore {
  readonly #random: Random;
  readonly #keys = new Map<string, WrappingKey>();

  constructor(random: Random) {
    this.#random = random;
  }

  async create(chain: string): Promise<WrappingKey> {
    const key = WrappingKey.generate(this.#random);
    this.#keys.set(chain, key);
    return key;
  }

  async find(chain: string): Promise<WrappingKey | undefined> {
    return this.#keys.get(chain);
  }
}
