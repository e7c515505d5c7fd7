import { contentDigest } from "../action/canonical-json.ts";
import type { TrustRefusal } from "./refusal.ts";

export const extensionKinds = ["pack", "plugin", "engine"] as const;
export type ExtensionKind = (typeof extensionKinds)[number];

/** The signers' claim about the extension. The compiler compares the manifest with it. */
export interface ExtensionClaim {
  readonly kind: ExtensionKind;
  readonly name: string;
  readonly version: string;
  /** Increases with each release. */
  readonly sequence: number;
}

/** The files of an extension as read once: paths separated by `/`, sorted by code unit, with their bytes. */
export interface ExtensionFiles {
  readonly kind: ExtensionKind;
  readonly files: ReadonlyMap<string, Buffer>;
  /** `sha256:<hex>` over the canonical JSON of the sorted `[path, sha256 of the bytes]`, the signature left out. */
  readonly digest: string;
}

/** A signer known by an identity. */
export interface ProvenIdentity {
  /** The signer's name in the trust policy. */
  readonly signer: string;
  readonly issuer: string;
  readonly subject: string;
  /** The proven time of signing: RFC 3339, milliseconds, UTC. */
  readonly signedAt: string;
}

/** The extension's build provenance, signed with it. */
export interface BuildStatement {
  /** `sha256:<hex>` of the file. */
  readonly digest: string;
  readonly predicateType: string;
  /** The builder's id in SLSA provenance; null elsewhere. */
  readonly builder: string | null;
  /** The identity that signed it, proven to be the trust policy's builder; null where the policy names none. */
  readonly provenBy: Omit<ProvenIdentity, "signer"> | null;
}

/** The result of judging an extension's signatures. `untrusted`: signed, but refused. */
interface TrustResult {
  readonly trust: "trusted" | "untrusted" | "unsigned";
  /** The names of the trusted signers, sorted; empty unless `trusted`. */
  readonly signers: readonly string[];
  /** The identities of the signers who did not use a key of their own. */
  readonly identities: readonly ProvenIdentity[];
  /** Null where no trusted signer signed one. */
  readonly build: BuildStatement | null;
  /** True where its `allow` counts as abstain, whatever its manifest says. */
  readonly tightenOnly: boolean;
  /** `sha256:<hex>` of the signature file; null without one. */
  readonly bundleDigest: string | null;
  readonly claim: ExtensionClaim | null;
  /** The failed check; null where none failed or none was made. */
  readonly check: string | null;
}

/**
 * An extension that may be compiled. Compilers accept nothing else and read only these bytes.
 *
 * INVARIANT: one exists only where the verifier trusted exactly these bytes, or where an operator who does not require
 * signatures accepted them, marked as such. `core/trust/verifier.ts` and `core/trust/verified-extension.ts` are the
 * only callers of the two factories; the architecture test checks that.
 */
export class VerifiedExtension implements ExtensionFiles, TrustResult {
  readonly kind: ExtensionKind;
  readonly files: ReadonlyMap<string, Buffer>;
  readonly digest: string;
  readonly trust: TrustResult["trust"];
  readonly signers: readonly string[];
  readonly identities: readonly ProvenIdentity[];
  readonly build: BuildStatement | null;
  readonly tightenOnly: boolean;
  readonly bundleDigest: string | null;
  readonly claim: ExtensionClaim | null;
  readonly check: string | null;
  readonly #genuine = true;

  private constructor({ kind, files, digest }: ExtensionFiles, result: TrustResult) {
    this.kind = kind;
    this.files = files;
    this.digest = digest;
    this.trust = result.trust;
    this.signers = result.signers;
    this.identities = result.identities;
    this.build = result.build;
    this.tightenOnly = result.tightenOnly;
    this.bundleDigest = result.bundleDigest;
    this.claim = result.claim;
    this.check = result.check;
    Object.freeze(this);
  }

  static admitTrusted(
    files: ExtensionFiles,
    result: Pick<TrustResult, "signers" | "identities" | "build" | "tightenOnly"> & {
      readonly bundleDigest: string;
      readonly claim: ExtensionClaim;
    },
  ): VerifiedExtension {
    if (result.signers.length === 0) throw new TypeError("admitTrusted: expected at least one signer, got none");
    return new VerifiedExtension(files, { ...result, trust: "trusted", check: null });
  }

  static admitUnverified(
    files: ExtensionFiles,
    result: Pick<TrustResult, "bundleDigest" | "check"> & { readonly trust: "untrusted" | "unsigned" },
  ): VerifiedExtension {
    const unsigned = { signers: [], identities: [], build: null, tightenOnly: false, claim: null };
    return new VerifiedExtension(files, { ...result, ...unsigned });
  }

  /** The signers as evidence names them; null unless trusted. */
  get signer(): string | null {
    return this.signers.length === 0 ? null : this.signers.join(", ");
  }

  /** Returns the bytes by path. Throws TypeError for anything but a genuine VerifiedExtension. */
  static open(extension: VerifiedExtension): ReadonlyMap<string, Buffer> {
    if (!(#genuine in extension)) throw new TypeError("open: expected a VerifiedExtension");
    return extension.files;
  }
}

/**
 * Accepts an extension without a trusted signature, marked as such: for operators who do not require signatures, and
 * for tools that only inspect. `refused` is the failed check; null where none was made.
 */
export function acceptUnverified(
  folder: ExtensionFiles & { readonly signature: Buffer | undefined },
  refused: TrustRefusal | null,
): VerifiedExtension {
  const bundleDigest = folder.signature === undefined ? null : contentDigest(folder.signature);
  const trust = bundleDigest === null ? "unsigned" : "untrusted";
  return VerifiedExtension.admitUnverified(folder, { trust, bundleDigest, check: refused?.check ?? null });
}

export function isRefused<T extends object>(result: T | TrustRefusal): result is TrustRefusal {
  return !(result instanceof VerifiedExtension) && "check" in result;
}
