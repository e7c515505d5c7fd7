import { dirname, resolve } from "node:path";
import { deepFreeze } from "../kernel/json.ts";
import { type PublicKey, publicKeyKinds, readPublicKey } from "../kernel/public-key.ts";
import type { TrustedKey, TrustPolicy } from "../kernel/trust-policy.ts";
import { checkTree } from "./check.ts";
import { readConfigFile } from "./config-file.ts";
import { trustSchema } from "./extension-schema.ts";
import { FaultList } from "./fault.ts";
import type { Draft, Form } from "./field.ts";
import { refuseRepeats } from "./repetition.ts";
import { readYamlTree } from "./yaml-tree.ts";

type TrustForm = Form<typeof trustSchema>;
type SignerForm = TrustForm["all_of"][number];

/** A trust policy, and the files it came from. */
export interface TrustFile {
  readonly policy: TrustPolicy;
  /** The file itself and the keys it names, absolute. */
  readonly files: readonly string[];
}

/**
 * Reads and checks one trust policy and the keys it names; deep-frozen.
 * Throws CONFIG_INVALID with every fault of the file, as `loadConfig` does.
 */
export async function loadTrustFile(path: string): Promise<TrustFile> {
  const faults = new FaultList(path);
  const text = await readConfigFile(path, faults);
  const tree = text === null ? null : readYamlTree(text, faults);
  if (tree === null) {
    if (faults.isEmpty) faults.add("", "expected a mapping, got nothing");
    return faults.throwAll();
  }
  const draft = checkTree<TrustForm>(tree, trustSchema, faults);
  checkThreshold(draft, faults);
  const loader = new SignerLoader(dirname(resolve(path)), faults);
  const allOf = await loader.load(draft?.all_of, "all_of");
  const signers = await loader.load(draft?.any_of?.signers, "any_of.signers");
  if (!faults.isEmpty) faults.throwAll();
  // INVARIANT: without a fault the draft has no holes.
  const { any_of: any, revoked } = draft as TrustForm;
  const anyOf = signers.length === 0 ? null : { minimum: any.minimum, signers };
  return deepFreeze({ policy: { allOf, anyOf, revoked }, files: [resolve(path), ...loader.files] });
}

function checkThreshold(draft: Draft<TrustForm>, faults: FaultList): void {
  const { all_of: all, any_of: any } = draft ?? {};
  if (all?.length === 0 && any?.signers?.length === 0) faults.add("", "expected at least one signer, got none");
  const { minimum, signers } = any ?? {};
  if (minimum === undefined || signers === undefined || signers.length === 0 || minimum <= signers.length) return;
  faults.add("any_of.minimum", `expected at most the ${signers.length} signers there are, got ${minimum}`);
}

class SignerLoader {
  readonly files: string[] = [];
  readonly #folder: string;
  readonly #faults: FaultList;

  constructor(folder: string, faults: FaultList) {
    this.#folder = folder;
    this.#faults = faults;
  }

  /** What is not a fault, in order. One key under two names would be two signers. */
  async load(drafts: Draft<readonly SignerForm[]>, path: string): Promise<readonly TrustedKey[]> {
    const signers: (TrustedKey | undefined)[] = [];
    for (const [index, draft] of (drafts ?? []).entries()) {
      signers.push(await this.#signer(draft, `${path}[${index}]`));
    }
    const at = (index: number): string => `${path}[${index}]`;
    const names = signers.map((signer) => signer?.name);
    const keys = signers.map((signer) => signer?.keyId);
    refuseRepeats(names, (index) => `${at(index)}.name`, "a name of its own", this.#faults);
    refuseRepeats(keys, at, "a key of its own", this.#faults, "the key");
    return signers.filter((signer) => signer !== undefined);
  }

  async #signer(draft: Draft<SignerForm>, path: string): Promise<TrustedKey | undefined> {
    const key = await this.#key(draft, path);
    const { name, not_before: from, not_after: to, tighten_only: tightenOnly } = draft ?? {};
    if (key === undefined || name === undefined || from === undefined || to === undefined) return undefined;
    if (tightenOnly === undefined) return undefined;
    const [notBefore, notAfter] = [from, to].map((time) => (time === null ? null : new Date(time).toISOString()));
    if (notBefore === undefined || notAfter === undefined) return undefined;
    if (notBefore !== null && notAfter !== null && notAfter <= notBefore) {
      this.#faults.add(`${path}.not_after`, "expected a time after `not_before`");
    }
    return { name, keyId: key.id, spki: key.spki, notBefore, notAfter, tightenOnly };
  }

  async #key(draft: Draft<SignerForm>, path: string): Promise<PublicKey | undefined> {
    const { key, key_file: file } = draft ?? {};
    if (key === undefined || file === undefined) return undefined;
    if ((key === null) === (file === null)) {
      this.#faults.add(path, `expected either \`key\` or \`key_file\`, got ${key === null ? "neither" : "both"}`);
      return undefined;
    }
    if (key !== null) return this.#known(readPublicKey(key), `${path}.key`);
    return file === null ? undefined : this.#keyFile(resolve(this.#folder, file), `${path}.key_file`);
  }

  async #keyFile(file: string, path: string): Promise<PublicKey | undefined> {
    this.files.push(file);
    const own = new FaultList(file);
    const text = await readConfigFile(file, own);
    if (text !== null) return this.#known(readPublicKey(text), path);
    this.#faults.add(path, "expected a readable file of at most 1 MiB of text");
    return undefined;
  }

  #known(key: PublicKey | undefined, path: string): PublicKey | undefined {
    if (key === undefined) this.#faults.add(path, `expected ${publicKeyKinds}, got something else`);
    return key;
  }
}
