import { resolve } from "node:path";
import { type PublicKey, publicKeyKinds, readPublicKey } from "../kernel/public-key.ts";
import type { TrustedKey, TrustedSigner } from "../kernel/trust-policy.ts";
import { readConfigFile } from "./config-file.ts";
import type { trustSchema } from "./extension-schema.ts";
import { FaultList } from "./fault.ts";
import type { Draft, Form } from "./field.ts";
import { refuseRepeats } from "./repetition.ts";
import { readIdentity, refuseOverlaps } from "./trusted-identity.ts";

type SignerForm = Form<typeof trustSchema>["all_of"][number];

/** Reads the signers of one trust policy. */
export class SignerLoader {
  /** The key files that were named, absolute. */
  readonly files: string[] = [];
  readonly #folder: string;
  readonly #hasRoot: boolean;
  readonly #faults: FaultList;

  constructor(folder: string, hasRoot: boolean, faults: FaultList) {
    this.#folder = folder;
    this.#hasRoot = hasRoot;
    this.#faults = faults;
  }

  /** What is not a fault, in order. One key or identity under two names would be two signers. */
  async load(drafts: Draft<readonly SignerForm[]>, path: string): Promise<readonly TrustedSigner[]> {
    const signers: (TrustedSigner | undefined)[] = [];
    for (const [index, draft] of (drafts ?? []).entries()) {
      signers.push(await this.#signer(draft, `${path}[${index}]`));
    }
    const at = (index: number): string => `${path}[${index}]`;
    const names = signers.map((signer) => signer?.name);
    const keys = signers.map((signer) => signer?.key?.keyId);
    refuseRepeats(names, (index) => `${at(index)}.name`, "a name of its own", this.#faults);
    refuseRepeats(keys, at, "a key of its own", this.#faults, "the key");
    const identities = signers.map((signer) => signer?.identity ?? undefined);
    refuseOverlaps(identities, (index) => `${at(index)}.identity`, this.#faults);
    return signers.filter((signer) => signer !== undefined);
  }

  async #signer(draft: Draft<SignerForm>, path: string): Promise<TrustedSigner | undefined> {
    const key = await this.#key(draft, path);
    const identity = readIdentity(draft?.identity, `${path}.identity`, this.#faults);
    if (draft?.identity && !this.#hasRoot) {
      this.#faults.add(`${path}.identity`, "expected `trusted_root` beside it, which says who proves it, got none");
    }
    const { name, not_before: from, not_after: to, tighten_only: tightenOnly } = draft ?? {};
    if (key === undefined || identity === undefined || name === undefined) return undefined;
    if (from === undefined || to === undefined || tightenOnly === undefined) return undefined;
    const [notBefore, notAfter] = [from, to].map((time) => (time === null ? null : new Date(time).toISOString()));
    if (notBefore === undefined || notAfter === undefined) return undefined;
    if (notBefore !== null && notAfter !== null && notAfter <= notBefore) {
      this.#faults.add(`${path}.not_after`, "expected a time after `not_before`");
    }
    return { name, key, identity, notBefore, notAfter, tightenOnly };
  }

  /** Null: the signer has an identity instead. */
  async #key(draft: Draft<SignerForm>, path: string): Promise<TrustedKey | null | undefined> {
    const { key, key_file: file, identity } = draft ?? {};
    if (key === undefined || file === undefined) return undefined;
    if (key !== null && file !== null) {
      this.#faults.add(path, "expected either `key` or `key_file`, got both");
      return undefined;
    }
    if (key !== null) return this.#known(readPublicKey(key), `${path}.key`);
    if (file !== null) return this.#keyFile(resolve(this.#folder, file), `${path}.key_file`);
    if (identity === null) this.#faults.add(path, "expected `key`, `key_file` or `identity`, got none of them");
    return null;
  }

  async #keyFile(file: string, path: string): Promise<TrustedKey | undefined> {
    this.files.push(file);
    const own = new FaultList(file);
    const text = await readConfigFile(file, own);
    if (text !== null) return this.#known(readPublicKey(text), path);
    this.#faults.add(path, "expected a readable file of at most 1 MiB of text");
    return undefined;
  }

  #known(key: PublicKey | undefined, path: string): TrustedKey | undefined {
    if (key !== undefined) return { keyId: key.id, spki: key.spki };
    this.#faults.add(path, `expected ${publicKeyKinds}, got something else`);
    return undefined;
  }
}
