import { contentDigest } from "../action/canonical-json.ts";
import { type ErrorCode, GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import type { JsonObject } from "../action/json.ts";
import type { Mode, Policy } from "../action/policy.ts";
import type { TrustPolicy } from "../config/trust-policy.ts";
import type { SharedEvent } from "../evidence/tenant-record.ts";
import { type ExtensionFolder, readExtensionFolder } from "../trust/folder.ts";
import { type TrustRefusal, trustError } from "../trust/refusal.ts";
import {
  acceptUnverified,
  type BuildStatement,
  type ExtensionKind,
  isRefused,
  type ProvenIdentity,
  type VerifiedExtension,
} from "../trust/verified-extension.ts";
import type { SeenLookup } from "../trust/verifier.ts";
import { type LoadedPack, loadPack, refuseDuplicatePacks } from "./pack.ts";
import { type LoadedPolicy, loadPluginPolicy, type PluginPlace, type PluginPorts } from "./plugin-load.ts";

interface PackPlace {
  readonly path: string;
  readonly mode: Mode;
  readonly settings: JsonObject;
  readonly shadowRules: readonly string[];
}

/** A folder of another kind, and what makes a policy of its verified bytes. */
export interface ExtensionLoader {
  readonly kind: ExtensionKind;
  readonly path: string;
  readonly compile: (extension: VerifiedExtension) => Promise<LoadedPolicy>;
}

interface PolicyLoadOptions extends PluginPorts {
  readonly packs: readonly PackPlace[];
  readonly plugins: readonly PluginPlace[];
  /** Folders that layers above this one compile. */
  readonly others: readonly ExtensionLoader[];
  /** True where untrusted extensions are refused; requires a trust policy. */
  readonly strict: boolean;
  /** Null where nothing is trusted. */
  readonly trustPolicy: TrustPolicy | null;
  readonly lookUp: SeenLookup;
  readonly clock: Clock;
  /** Called for each extension that is loaded although the trust policy does not trust it. */
  readonly onUntrusted: (path: string, refused: TrustRefusal) => void;
  /** Called with all refused extensions before the load rejects. */
  readonly onRefused: (refused: readonly RefusedExtension[]) => Promise<void>;
}

export interface LoadedPolicies {
  readonly policies: readonly Policy[];
  readonly extensions: readonly LoadedExtension[];
}

/**
 * Loads the packs, plugins and engines of a configuration: reads each folder once, verifies its signatures, compiles those bytes
 * and runs its own tests. All or nothing: rejects with the first GatewayError, whose detail lists all failures.
 */
export async function loadExtensions(options: PolicyLoadOptions): Promise<LoadedPolicies> {
  const packs: LoadedPack[] = [];
  const plugins: LoadedPolicy[] = [];
  const others: LoadedPolicy[] = [];
  const failures: Failure[] = [];
  for (const place of options.packs) {
    const compile = (extension: VerifiedExtension): Promise<LoadedPack> =>
      loadPack({ ...place, extension, clock: options.clock });
    sort(await loadPlace("pack", place.path, options, compile), packs, failures);
  }
  for (const place of options.plugins) {
    const compile = (extension: VerifiedExtension): Promise<LoadedPolicy> =>
      loadPluginPolicy(place, extension, options);
    sort(await loadPlace("plugin", place.path, options, compile), plugins, failures);
  }
  for (const { kind, path, compile } of options.others) {
    sort(await loadPlace(kind, path, options, compile), others, failures);
  }
  if (failures.length > 0) {
    await options.onRefused(failures.map(({ refused }) => refused));
    throw joinErrors(failures.map(({ error }) => error));
  }
  refuseDuplicatePacks(packs);
  refuseDuplicateNames([...plugins, ...others], packs);
  const loaded: readonly LoadedPolicy[] = [...packs, ...plugins, ...others];
  const extensions = loaded.map(({ ref, extension }) => ({ extension, name: ref.name, version: ref.version }));
  return { policies: loaded.map(({ policy }) => policy), extensions };
}

function sort<T extends object>(result: T | Failure, loaded: T[], failures: Failure[]): void {
  if ("error" in result) failures.push(result);
  else loaded.push(result);
}

/** The name of a plugin or engine is the namespace of its rules, so it must differ from all namespaces. */
function refuseDuplicateNames(named: readonly LoadedPolicy[], packs: readonly LoadedPack[]): void {
  const taken = new Set(packs.map(({ namespace }) => namespace));
  for (const { ref } of named) {
    const code = ref.kind === "engine" ? "ENGINE_INVALID" : "PLUGIN_INVALID";
    if (taken.has(ref.name)) throw new GatewayError(code, `\`${ref.name}\`: expected a name of its own`);
    taken.add(ref.name);
  }
}

interface Failure {
  readonly error: GatewayError;
  readonly refused: RefusedExtension;
}

/** FaultList of an extension itself, whoever signed it; any other error is a fault of the gateway. */
const contentChecks: Partial<Readonly<Record<ErrorCode, string>>> = {
  EXTENSION_INVALID: "folder_invalid",
  PACK_INVALID: "content_invalid",
  PLUGIN_INVALID: "content_invalid",
  ENGINE_INVALID: "content_invalid",
};

async function loadPlace<T>(
  kind: ExtensionKind,
  path: string,
  options: PolicyLoadOptions,
  compile: (extension: VerifiedExtension) => Promise<T>,
): Promise<T | Failure> {
  let folder: ExtensionFolder | undefined;
  try {
    folder = await readExtensionFolder(path, kind);
    const admitted = await admit(folder, options);
    if (isRefused(admitted)) {
      return { error: trustError(path, admitted), refused: await describeRefused(kind, folder, admitted.check) };
    }
    return await compile(admitted);
  } catch (cause) {
    const error = GatewayError.from(cause);
    const check = contentChecks[error.code];
    if (check === undefined) throw error;
    return { error, refused: await describeRefused(kind, folder, check) };
  }
}

/** Decides whether an extension without a trusted signature may be loaded; the only place that does. */
async function admit(folder: ExtensionFolder, options: PolicyLoadOptions): Promise<VerifiedExtension | TrustRefusal> {
  const { strict, trustPolicy, lookUp, clock, onUntrusted } = options;
  if (trustPolicy === null) {
    if (strict) throw new TypeError("admit: expected a trust policy in strict mode");
    return acceptUnverified(folder, null);
  }
  const { verifyExtension } = await import("../trust/verifier.ts");
  const result = await verifyExtension(folder, trustPolicy, new Date(clock()).toISOString(), lookUp);
  if (!isRefused(result) || strict) return result;
  onUntrusted(folder.path, result);
  return acceptUnverified(folder, result);
}

async function describeRefused(
  kind: ExtensionKind,
  folder: ExtensionFolder | undefined,
  check: string,
): Promise<RefusedExtension> {
  const known = { kind, name: null, version: null, check };
  if (folder === undefined) return { ...known, digest: null, bundleDigest: null };
  const { digest, signature } = folder;
  const bundleDigest = signature === undefined ? null : contentDigest(signature);
  const { readSigned } = await import("../trust/verifier.ts");
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

/** A loaded extension, with the name and version of its manifest. */
export interface LoadedExtension {
  readonly extension: VerifiedExtension;
  readonly name: string;
  readonly version: string;
}

/** A refused extension. Null members could not be read. */
interface RefusedExtension {
  readonly kind: ExtensionKind;
  /** The unverified name in its signature; anybody can sign. */
  readonly name: string | null;
  readonly version: string | null;
  readonly digest: string | null;
  readonly bundleDigest: string | null;
  /** The name of the check that failed. */
  readonly check: string;
}

/** The records of a reload: unloaded extensions, then loaded ones. Unchanged extensions have none. */
export function extensionEvents(
  before: readonly LoadedExtension[],
  after: readonly LoadedExtension[],
): readonly SharedEvent[] {
  const stays = (each: LoadedExtension, others: readonly LoadedExtension[]): boolean =>
    others.some((other) => keyOf(other) === keyOf(each));
  return [
    ...before.filter((each) => !stays(each, after)).map((each) => loadedEvent("unloaded", each)),
    ...after.filter((each) => !stays(each, before)).map((each) => loadedEvent("loaded", each)),
  ];
}

export function refusalEvent({ kind, name, version, digest, bundleDigest, check }: RefusedExtension): SharedEvent {
  const trust = bundleDigest === null ? "unsigned" : "untrusted";
  const known = { event: "refused", kind, name, version, digest, signers: [], bundle_digest: bundleDigest, trust };
  return { kind: "extension", detail: { ...known, check } };
}

function loadedEvent(event: "loaded" | "unloaded", { extension, name, version }: LoadedExtension): SharedEvent {
  const { kind, digest, signers, bundleDigest, trust, check } = extension;
  const known = { event, kind, name, version, digest, signers, bundle_digest: bundleDigest, trust };
  const detail = { ...known, ...provenanceOf(extension) };
  return { kind: "extension", detail: check === null ? detail : { ...detail, check } };
}

function provenanceOf({ identities, build }: VerifiedExtension): JsonObject {
  return {
    ...(identities.length === 0 ? {} : { identities: identities.map(renderIdentity) }),
    ...(build === null ? {} : { build: renderBuild(build) }),
  };
}

export function renderIdentity({ signer, issuer, subject, signedAt }: ProvenIdentity): JsonObject {
  return { signer, issuer, subject, signed_at: signedAt };
}

export function renderBuild({ digest, predicateType, builder, provenBy }: BuildStatement): JsonObject {
  const statement = { digest, predicate_type: predicateType, builder };
  if (provenBy === null) return statement;
  const { issuer, subject, signedAt } = provenBy;
  return { ...statement, proven_by: { issuer, subject, signed_at: signedAt } };
}

/** The recorded members as a key: the same bytes with a new signature count as a new load. */
function keyOf(loaded: LoadedExtension): string {
  return JSON.stringify(loadedEvent("loaded", loaded).detail);
}
