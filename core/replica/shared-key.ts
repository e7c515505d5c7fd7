import { hkdfSync } from "node:crypto";
import { open, readdir, readFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { GatewayError } from "../action/error.ts";
import type { Random } from "../action/id.ts";
import { openBytes, sealBytes } from "../evidence/key/wrapping-key.ts";
import { makeFolder, syncFolder } from "../store/folder.ts";
import type { LeaseClaim, ReplicaDatabase } from "./database.ts";

interface SharedKeysOptions {
  /** The folder `keys` of this replica. */
  readonly folder: string;
  readonly database: Pick<ReplicaDatabase, "readKeys" | "addKey">;
  /** The secret that all replicas have. */
  readonly secret: string;
  readonly random: Random;
}

/** A file that the gateway itself creates: never a path that leads out of the folder. */
const namePattern = /^(?:tickets\/)?[A-Za-z0-9_-]{1,64}\.(?:pem|wrap)$/;

/** Returns the 32 bytes of a purpose that replicas make of their secret. */
export function deriveReplicaKey(secret: string, purpose: string): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, "", `gateway-replica-v1 ${purpose}`, 32));
}

/** The key files of the replicas: sealed with their secret in the database, plain in the key folder of each. */
export class SharedKeys {
  readonly #options: SharedKeysOptions;
  readonly #key: Buffer;

  constructor(options: SharedKeysOptions) {
    this.#options = options;
    this.#key = deriveReplicaKey(options.secret, "key files");
  }

  /** Writes the files that this replica does not have. Throws STATE_UNUSABLE where they were sealed with another secret. */
  async fetch(): Promise<void> {
    for (const [name, sealed] of await this.#options.database.readKeys()) {
      const bytes = namePattern.test(name) ? openBytes(this.#key, placeOf(name), sealed) : undefined;
      if (bytes === undefined) {
        const text =
          "the keys in the database do not open with the secret of `store.secret_env`; give every replica the same";
        throw new GatewayError("STATE_UNUSABLE", text);
      }
      await writeNew(join(this.#options.folder, name), bytes);
    }
  }

  /** Adds a key file of this replica to the database: before anything is signed or sealed with it. */
  async add(claim: LeaseClaim, path: string): Promise<void> {
    const name = relative(this.#options.folder, path);
    const sealed = sealBytes(this.#key, placeOf(name), await readFile(path), this.#options.random);
    await this.#options.database.addKey(claim, name, sealed);
  }

  /** Adds every key file of this replica. */
  async addAll(claim: LeaseClaim): Promise<void> {
    const { folder } = this.#options;
    const names = await readdir(folder, { recursive: true }).catch(() => []);
    for (const name of names) if (namePattern.test(name)) await this.add(claim, join(folder, name));
  }
}

function placeOf(name: string): string {
  return `replica key file ${name}`;
}

/** Durable when it resolves; a file that is there stays as it is. */
async function writeNew(path: string, bytes: Buffer): Promise<void> {
  await makeFolder(dirname(path));
  const file = await open(path, "wx", 0o600).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "EEXIST") return undefined;
    throw error;
  });
  if (file === undefined) return;
  try {
    await file.writeFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
  await syncFolder(dirname(path));
}
