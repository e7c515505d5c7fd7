import { sha256Hex } from "../../action/canonical-json.ts";
import type { SigningKey, VerifyingKey } from "../../action/signing-key.ts";
import { isSignedBy, noteSigner, parseNote, signNote } from "../tree/checkpoint.ts";
import { leafHash, rootOf } from "../tree/merkle.ts";

/** The head of one chain of an installation when it was published. */
export interface TenantIndexEntry {
  readonly tenant: string;
  readonly chain: string;
  readonly size: number;
  /** Root of the chain's tree, hex. */
  readonly root: string;
  /** 16 random bytes of this chain, base64url: a witness cannot guess which chains there are. */
  readonly salt: string;
}

/** The content of a tenant index's note: the number of chains, and the root over all of them. */
interface TenantIndexNote {
  readonly size: number;
  readonly root: Buffer;
}

/** The log under which witnesses keep an installation's list of chains. */
export function tenantIndexLog(installation: string): string {
  return `meta-${installation}`;
}

/** RFC 6962 root over the sorted digests of the entries: the same chains at the same sizes give the same root. */
export function tenantIndexRoot(entries: readonly TenantIndexEntry[]): Buffer {
  const digests = entries.map(({ salt, chain, size, root }) => sha256Hex(`${salt}\n${chain}\n${size}\n${root}`));
  return rootOf(digests.sort().map(leafHash));
}

/** The signed note over an installation's chains. With all of them in it, none can be removed unseen. */
export function signTenantIndex(installation: string, entries: readonly TenantIndexEntry[], key: SigningKey): string {
  const text = `${originOf(installation)}\n${entries.length}\n${tenantIndexRoot(entries).toString("base64")}\n`;
  return signNote(text, [noteSigner(keyNameOf(installation, key.id), key)]);
}

/** Reads a note of this installation; undefined for any other, and for one this key did not sign. */
export function readTenantIndex(text: string, installation: string, key: VerifyingKey): TenantIndexNote | undefined {
  const note = parseNote(text);
  const isSigned = note !== undefined && isSignedBy(note, { name: keyNameOf(installation, key.id), key });
  return isSigned ? parseTenantIndex(text, installation) : undefined;
}

/** Parses a note of this installation without checking its signature; undefined for any other. */
export function parseTenantIndex(text: string, installation: string): TenantIndexNote | undefined {
  const [origin, size = "", root = "", ...rest] = parseNote(text)?.text.split("\n") ?? [];
  if (rest.length !== 1 || origin !== originOf(installation) || !/^(?:0|[1-9]\d{0,9})$/.test(size)) return undefined;
  return { size: Number(size), root: Buffer.from(root, "base64") };
}

/** Checks that a note is over exactly these entries. */
export function coversEntries(note: TenantIndexNote, entries: readonly TenantIndexEntry[]): boolean {
  return note.size === entries.length && tenantIndexRoot(entries).equals(note.root);
}

function originOf(installation: string): string {
  return `agent-governance-gateway/meta/${installation}`;
}

function keyNameOf(installation: string, keyId: string): string {
  return `meta/${installation}/${keyId}`;
}
