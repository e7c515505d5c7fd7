import { dirname, resolve } from "node:path";
import { deepFreeze } from "../kernel/json.ts";
import type { TrustPolicy } from "../kernel/trust-policy.ts";
import { checkTree } from "./check.ts";
import { readConfigFile } from "./config-file.ts";
import { trustSchema } from "./extension-schema.ts";
import { FaultList } from "./fault.ts";
import type { Draft, Form } from "./field.ts";
import { readTrustedRoot } from "./trusted-root.ts";
import { SignerLoader } from "./trusted-signer.ts";
import { readYamlTree } from "./yaml-tree.ts";

type TrustForm = Form<typeof trustSchema>;

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
  const text = await readConfigFile(path, faults);
  const tree = text === null ? null : readYamlTree(text, faults);
  if (tree === null) {
    if (faults.isEmpty) faults.add("", "expected a mapping, got nothing");
    return faults.throwAll();
  }
  const draft = checkTree<TrustForm>(tree, trustSchema, faults);
  checkThreshold(draft, faults);
  const folder = dirname(resolve(path));
  const rootFile = draft?.trusted_root ? resolve(folder, draft.trusted_root) : null;
  const trustedRoot = rootFile === null ? null : ((await readTrustedRoot(rootFile, "trusted_root", faults)) ?? null);
  const loader = new SignerLoader(folder, draft?.trusted_root !== null, faults);
  const allOf = await loader.load(draft?.all_of, "all_of");
  const signers = await loader.load(draft?.any_of?.signers, "any_of.signers");
  if (!faults.isEmpty) faults.throwAll();
  // INVARIANT: without a fault the draft has no holes.
  const { any_of: any, revoked } = draft as TrustForm;
  const anyOf = signers.length === 0 ? null : { minimum: any.minimum, signers };
  const files = [resolve(path), ...(rootFile === null ? [] : [rootFile]), ...loader.files];
  return deepFreeze({ policy: { allOf, anyOf, trustedRoot, revoked }, files });
}

function checkThreshold(draft: Draft<TrustForm>, faults: FaultList): void {
  const { all_of: all, any_of: any } = draft ?? {};
  if (all?.length === 0 && any?.signers?.length === 0) faults.add("", "expected at least one signer, got none");
  const { minimum, signers } = any ?? {};
  if (minimum === undefined || signers === undefined || signers.length === 0 || minimum <= signers.length) return;
  faults.add("any_of.minimum", `expected at most the ${signers.length} signers there are, got ${minimum}`);
}
