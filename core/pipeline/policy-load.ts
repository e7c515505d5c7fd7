import { type ExtensionFolder, readExtensionFolder } from "../extension/folder.ts";
import { type Refused, refusalError } from "../extension/refusal.ts";
import { acceptUnverified } from "../extension/unverified.ts";
import { isRefused, readSigned, type SeenLookup, verifyExtension } from "../extension/verifier.ts";
import { contentDigest } from "../kernel/digest.ts";
import { type ErrorCode, GatewayError } from "../kernel/error.ts";
import type { JsonObject } from "../kernel/json.ts";
import type { Mode, Policy } from "../kernel/policy.ts";
import type { Clock } from "../kernel/port.ts";
import type { TrustPolicy } from "../kernel/trust-policy.ts";
import type { VerifiedExtension } from "../kernel/verified-extension.ts";
import { type LoadedPack, loadPack, refuseTwins } from "../policy/pack.ts";
import type { LoadedExtension, RefusedExtension } from "./extension-record.ts";

export interface PackPlace {
  readonly path: string;
  readonly mode: Mode;
  readonly settings: JsonObject;
}

export interface PolicyLoadOptions {
  readonly packs: readonly PackPlace[];
  /** What is not trusted is refused; then there is a trust policy. */
  readonly strict: boolean;
  /** Null: nothing is trusted. */
  readonly trustPolicy: TrustPolicy | null;
  readonly lookUp: SeenLookup;
  readonly clock: Clock;
  /** Hears of a pack that is loaded although the trust policy does not trust it. */
  readonly onUntrusted: (path: string, refused: Refused) => void;
  /** Hears of all that was refused, before this rejects. */
  readonly onRefused: (refused: readonly RefusedExtension[]) => Promise<void>;
}

export interface LoadedPolicies {
  readonly policies: readonly Policy[];
  readonly extensions: readonly LoadedExtension[];
}

/**
 * Loads the packs that a configuration names: reads each folder once, asks who vouches for it, compiles those bytes and
 * runs the pack's own tests. All or nothing: rejects with the first GatewayError that says why not, telling of them all.
 */
export async function loadPolicies(options: PolicyLoadOptions): Promise<LoadedPolicies> {
  const packs: LoadedPack[] = [];
  const failures: Failure[] = [];
  for (const place of options.packs) {
    const result = await loadPlace(place, options);
    if ("error" in result) failures.push(result);
    else packs.push(result);
  }
  if (failures.length > 0) {
    await options.onRefused(failures.map(({ refused }) => refused));
    throw joinErrors(failures.map(({ error }) => error));
  }
  refuseTwins(packs);
  const extensions = packs.map(({ ref, extension }) => ({ extension, name: ref.name, version: ref.version }));
  return { policies: packs.map(({ policy }) => policy), extensions };
}

interface Failure {
  readonly error: GatewayError;
  readonly refused: RefusedExtension;
}

/** What is wrong with an extension whoever signed it; anything else is a fault of the gateway. */
const contentChecks: Partial<Readonly<Record<ErrorCode, string>>> = {
  EXTENSION_INVALID: "folder_invalid",
  PACK_INVALID: "content_invalid",
};

async function loadPlace(place: PackPlace, options: PolicyLoadOptions): Promise<LoadedPack | Failure> {
  let folder: ExtensionFolder | undefined;
  try {
    folder = await readExtensionFolder(place.path, "pack");
    const admitted = await admit(folder, options);
    if (isRefused(admitted)) {
      return { error: refusalError(place.path, admitted), refused: tellRefused(folder, admitted.check) };
    }
    return await loadPack({ ...place, extension: admitted, clock: options.clock });
  } catch (cause) {
    const error = GatewayError.from(cause);
    const check = contentChecks[error.code];
    if (check === undefined) throw error;
    return { error, refused: tellRefused(folder, check) };
  }
}

/** The one place that decides whether an extension which nobody vouches for may still be loaded. */
async function admit(folder: ExtensionFolder, options: PolicyLoadOptions): Promise<VerifiedExtension | Refused> {
  const { strict, trustPolicy, lookUp, clock, onUntrusted } = options;
  if (trustPolicy === null) {
    if (strict) throw new TypeError("admit: expected a trust policy in strict mode");
    return acceptUnverified(folder, null);
  }
  const result = await verifyExtension(folder, trustPolicy, new Date(clock()).toISOString(), lookUp);
  if (!isRefused(result) || strict) return result;
  onUntrusted(folder.path, result);
  return acceptUnverified(folder, result);
}

function tellRefused(folder: ExtensionFolder | undefined, check: string): RefusedExtension {
  const known = { kind: "pack", name: null, version: null, check } as const;
  if (folder === undefined) return { ...known, digest: null, bundleDigest: null };
  const { digest, signature } = folder;
  const bundleDigest = signature === undefined ? null : contentDigest(signature);
  const signed = readSigned(folder);
  const claimed = isRefused(signed) ? {} : { name: signed.statement.name, version: signed.statement.version };
  return { ...known, ...claimed, digest, bundleDigest };
}

function joinErrors(errors: readonly GatewayError[]): GatewayError {
  const [first, ...others] = errors;
  if (first === undefined) throw new TypeError("joinErrors: expected an error, got none");
  if (others.length === 0) return first;
  const detail = [first.detail, ...others.map(({ message }) => message)].join("\n");
  return new GatewayError(first.code, detail, { cause: first });
}
