import { contentDigest } from "../action/canonical-json.ts";
import type { ExtensionFolder } from "./folder.ts";
import type { TrustRefusal } from "./refusal.ts";

export const extensionKinds = ["pack", "plugin"] as const;
export type ExtensionKind = (typeof extensionKinds)[number];

/** What the signers say the extension is. Whoever compiles it holds the manifest to it. */
export interface ExtensionClaim {
  readonly kind: ExtensionKind;
  readonly name: string;
  readonly version: string;
  /** Rises with each release. */
  readonly sequence: number;
}

/** One reading of a folder: paths with `/` between their parts, in the order of their code units, and their bytes. */
export interface ExtensionFiles {
  readonly kind: ExtensionKind;
  readonly files: ReadonlyMap<string, Buffer>;
  /** `sha256:<hex>` over the canonical JSON of the sorted `[path, sha256 of the bytes]`, the signature left out. */
  readonly digest: string;
}

/** A signer whom an identity provider named. */
export interface ProvenIdentity {
  /** As the trust policy calls the signer. */
  readonly signer: string;
  readonly issuer: string;
  readonly subject: string;
  /** A trusted time at which the signature was there: RFC 3339, milliseconds, UTC. */
  readonly signedAt: string;
}

/** What an extension says of how it was built, signed with it. */
export interface BuildStatement {
  /** `sha256:<hex>` of the file. */
  readonly digest: string;
  readonly predicateType: string;
  /** Who built it, where the predicate is SLSA provenance that says so. */
  readonly builder: string | null;
}

/** What vouched for an extension: `untrusted` has a signature that did not do. */
interface Vouching {
  readonly trust: "trusted" | "untrusted" | "unsigned";
  /** Names of the trusted signers, in order; none unless `trusted`. */
  readonly signers: readonly string[];
  /** How those of them are known who did not sign by a key of their own. */
  readonly identities: readonly ProvenIdentity[];
  /** Null: none that a trusted signer signed. */
  readonly build: BuildStatement | null;
  /** Whether its `allow` counts as abstaining, whatever its manifest says. */
  readonly tightenOnly: boolean;
  /** `sha256:<hex>` of the signature file; null where there is none. */
  readonly bundleDigest: string | null;
  readonly claim: ExtensionClaim | null;
  /** The check that failed; null where none did or none was made. */
  readonly check: string | null;
}

/**
 * An extension that may be compiled. Whoever compiles one takes nothing else, and reads nothing but these bytes.
 *
 * INVARIANT: one exists only where the verifier trusted exactly these bytes, or where an operator who does not insist on
 * signatures accepted them, marked as such. `core/trust/verifier.ts` and `core/trust/verified-extension.ts` are the only
 * callers of the two methods; the architecture test holds that.
 */
export class VerifiedExtension implements ExtensionFiles, Vouching {
  readonly kind: ExtensionKind;
  readonly files: ReadonlyMap<string, Buffer>;
  readonly digest: string;
  readonly trust: Vouching["trust"];
  readonly signers: readonly string[];
  readonly identities: readonly ProvenIdentity[];
  readonly build: BuildStatement | null;
  readonly tightenOnly: boolean;
  readonly bundleDigest: string | null;
  readonly claim: ExtensionClaim | null;
  readonly check: string | null;
  readonly #genuine = true;

  private constructor({ kind, files, digest }: ExtensionFiles, vouching: Vouching) {
    this.kind = kind;
    this.files = files;
    this.digest = digest;
    this.trust = vouching.trust;
    this.signers = vouching.signers;
    this.identities = vouching.identities;
    this.build = vouching.build;
    this.tightenOnly = vouching.tightenOnly;
    this.bundleDigest = vouching.bundleDigest;
    this.claim = vouching.claim;
    this.check = vouching.check;
    Object.freeze(this);
  }

  static admitTrusted(
    files: ExtensionFiles,
    vouching: Pick<Vouching, "signers" | "identities" | "build" | "tightenOnly"> & {
      readonly bundleDigest: string;
      readonly claim: ExtensionClaim;
    },
  ): VerifiedExtension {
    if (vouching.signers.length === 0) throw new TypeError("admitTrusted: expected at least one signer, got none");
    return new VerifiedExtension(files, { ...vouching, trust: "trusted", check: null });
  }

  static admitUnverified(
    files: ExtensionFiles,
    vouching: Pick<Vouching, "bundleDigest" | "check"> & { readonly trust: "untrusted" | "unsigned" },
  ): VerifiedExtension {
    const nobody = { signers: [], identities: [], build: null, tightenOnly: false, claim: null };
    return new VerifiedExtension(files, { ...vouching, ...nobody });
  }

  /** How evidence names who signed; null unless trusted. */
  get signer(): string | null {
    return this.signers.length === 0 ? null : this.signers.join(", ");
  }

  /** The bytes by path. Throws TypeError for a look-alike. */
  static open(extension: VerifiedExtension): ReadonlyMap<string, Buffer> {
    if (!(#genuine in extension)) throw new TypeError("open: expected a VerifiedExtension");
    return extension.files;
  }
}

/**
 * An extension that nobody vouches for, marked as such: for an operator who does not insist on signatures, and for tools
 * that only look. `refused` is the check that failed; null where none was made.
 */
export function acceptUnverified(folder: ExtensionFolder, refused: TrustRefusal | null): VerifiedExtension {
  const bundleDigest = folder.signature === undefined ? null : contentDigest(folder.signature);
  const trust = bundleDigest === null ? "unsigned" : "untrusted";
  return VerifiedExtension.admitUnverified(folder, { trust, bundleDigest, check: refused?.check ?? null });
}
