import { dirname, resolve } from "node:path";
import { deepFreeze, type JsonObject } from "../action/json.ts";
import { type PublicKey, publicKeyKinds, readPublicKey } from "../action/signing-key.ts";
import { checkDocument, type Draft } from "./check.ts";
import { readDocument, readTextFile } from "./document.ts";
import { FaultList } from "./fault.ts";
import { refuseRepeats } from "./repetition.ts";
import type { TrustedIdentity, TrustedKey, TrustedSigner, TrustedSubject, TrustPolicy } from "./trust-policy.ts";
import { type TrustForm, trustSchema } from "./trust-schema.ts";
import { parseTrustedRoot } from "./trusted-root.ts";

/** A trust policy, and the files it came from. */
export interface TrustFile {
  readonly policy: TrustPolicy;
  /** The file itself and those it names, absolute. */
  readonly files: readonly string[];
}

/**
 * Reads and checks one trust policy, the keys and the trusted root it names; deep-frozen.
 * Throws CONFIG_INVALID with every fault of the file, as `loadConfig` does.
 */
export async function loadTrustFile(path: string): Promise<TrustFile> {
  const faults = new FaultList(path);
  const document = await readDocument(path, faults);
  if (document === undefined) return faults.throwAll();
  const draft = checkDocument(document, trustSchema, faults);
  checkThreshold(draft, faults);
  const folder = dirname(resolve(path));
  const rootFile = draft?.trusted_root ? resolve(folder, draft.trusted_root) : null;
  const trustedRoot = rootFile === null ? null : ((await readTrustedRoot(rootFile, "trusted_root", faults)) ?? null);
  const loader = new SignerLoader(folder, draft?.trusted_root !== null, faults);
  const allOf = await loader.load(draft?.all_of, "all_of");
  const signers = await loader.load(draft?.any_of?.signers, "any_of.signers");
  const builder = readIdentity(draft?.builder, "builder", faults) ?? null;
  if (draft?.builder && draft.trusted_root === null) faults.add("builder", rootMissing);
  faults.throwIfAny();
  // INVARIANT: without a fault the draft has no holes.
  const { any_of: any, revoked } = draft as TrustForm;
  const anyOf = signers.length === 0 ? null : { minimum: any.minimum, signers };
  const files = [resolve(path), ...(rootFile === null ? [] : [rootFile]), ...loader.files];
  return deepFreeze({ policy: { allOf, anyOf, trustedRoot, builder, revoked }, files });
}

function checkThreshold(draft: Draft<TrustForm>, faults: FaultList): void {
  const { all_of: all, any_of: any } = draft ?? {};
  if (all?.length === 0 && any?.signers?.length === 0) faults.add("", "expected at least one signer, got none");
  const { minimum, signers } = any ?? {};
  if (minimum === undefined || signers === undefined || signers.length === 0 || minimum <= signers.length) return;
  faults.add("any_of.minimum", `expected at most the ${signers.length} signers there are, got ${minimum}`);
}

const rootMissing = "expected `trusted_root` beside it, which says who proves it, got none";

type IdentityForm = TrustForm["all_of"][number]["identity"];

/** Undefined where it is a fault, null where there is none. */
function readIdentity(draft: Draft<IdentityForm>, path: string, faults: FaultList): TrustedIdentity | null | undefined {
  if (draft === null) return null;
  const { equal, prefix } = draft?.subject ?? {};
  if (equal === undefined || prefix === undefined) return undefined;
  if ((equal === null) === (prefix === null)) {
    const got = equal === null ? "neither" : "both";
    faults.add(`${path}.subject`, `expected either \`equal\` or \`prefix\`, got ${got}`);
    return undefined;
  }
  const subject = equal === null ? prefixSubject(prefix) : equalSubject(equal);
  const issuer = draft?.issuer;
  return issuer === undefined || subject === undefined ? undefined : { issuer, subject };
}

function prefixSubject(prefix: string | null): TrustedSubject | undefined {
  return prefix === null ? undefined : { kind: "uri", prefix };
}

function equalSubject(equal: string): TrustedSubject {
  return { kind: /^[^:@]+:/.test(equal) ? "uri" : "email", equal };
}

/** An identity that two signers cover would count as both of them: one person would be two. */
function refuseOverlaps(
  identities: readonly (TrustedIdentity | undefined)[],
  pathOf: (index: number) => string,
  faults: FaultList,
): void {
  identities.forEach((identity, index) => {
    const earlier = identities.findIndex((other, at) => at < index && overlaps(identity, other));
    if (earlier === -1) return;
    faults.add(pathOf(index), `expected an identity of its own, got one that \`${pathOf(earlier)}\` shares`);
  });
}

function overlaps(one: TrustedIdentity | undefined, other: TrustedIdentity | undefined): boolean {
  if (one === undefined || other === undefined || one.issuer !== other.issuer) return false;
  return covers(one.subject, other.subject) || covers(other.subject, one.subject);
}

function covers(wide: TrustedSubject, narrow: TrustedSubject): boolean {
  const text = "equal" in narrow ? narrow.equal : narrow.prefix;
  return "equal" in wide ? "equal" in narrow && wide.equal === text : text.startsWith(wide.prefix);
}

/**
 * Reads a Sigstore TrustedRoot. What is wrong with it is one fault at `path`; then the answer is undefined.
 */
async function readTrustedRoot(file: string, path: string, faults: FaultList): Promise<JsonObject | undefined> {
  const text = await readTextFile(file, new FaultList(file));
  if (text === null) {
    faults.add(path, "expected a readable file of at most 1 MiB of text");
    return undefined;
  }
  const read = parseTrustedRoot(text);
  if ("expected" in read) faults.add(path, `expected ${read.expected}`);
  return "expected" in read ? undefined : read.json;
}

type SignerForm = TrustForm["all_of"][number];

/** Reads the signers of one trust policy. */
class SignerLoader {
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

  /** Returns the valid signers in order. One key or identity under two names would count as two signers. */
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
      this.#faults.add(`${path}.identity`, rootMissing);
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
    const text = await readTextFile(file, own);
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
