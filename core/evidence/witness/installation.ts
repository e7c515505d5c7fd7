import type { Random } from "../../action/id.ts";
import type { SigningKey } from "../../action/signing-key.ts";
import type { KeyStore } from "../key/key-folder.ts";
import { durably, type EvidenceStore, installationKey } from "../record/key-space.ts";

/** This data folder towards its witnesses: a random name, and the key that signs the list of its chains. */
export interface Installation {
  readonly id: string;
  readonly key: SigningKey;
}

const idBytes = 16;

const idPattern = /^[A-Za-z0-9_-]{1,64}$/;

/** The installation of a store, made at its first use. Rejects where its key is not in the key store. */
export async function openInstallation(store: EvidenceStore, keys: KeyStore, random: Random): Promise<Installation> {
  const text = await store.get(installationKey);
  if (text === undefined) return createInstallation(store, keys, random);
  const { id, key_id: keyId } = JSON.parse(text) as { readonly id: string; readonly key_id: string };
  const key = await keys.find(keyId);
  if (key === undefined) throw new Error(`the installation's key \`${keyId}\` is not in the key folder`);
  return { id, key };
}

/** The installation's name where it has one yet: a folder that never had a witness has none. */
export async function readInstallationId(store: EvidenceStore): Promise<string | undefined> {
  const text = await store.get(installationKey);
  if (text === undefined) return undefined;
  try {
    const { id } = JSON.parse(text) as { readonly id?: unknown };
    return typeof id === "string" && idPattern.test(id) ? id : undefined;
  } catch {
    return undefined; // as good as none: the witnesses know it by its name
  }
}

async function createInstallation(store: EvidenceStore, keys: KeyStore, random: Random): Promise<Installation> {
  const key = await keys.create();
  const id = Buffer.from(random(idBytes)).toString("base64url");
  await store.put(installationKey, JSON.stringify({ id, key_id: key.id }), durably);
  return { id, key };
}
