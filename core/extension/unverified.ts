import { contentDigest } from "../kernel/digest.ts";
import { VerifiedExtension } from "../kernel/verified-extension.ts";
import type { ExtensionFolder } from "./folder.ts";
import type { Refused } from "./refusal.ts";

/**
 * An extension that nobody vouches for, marked as such: for an operator who does not insist on signatures, and for tools
 * that only look. `refused` is the check that failed; null where none was made.
 */
export function acceptUnverified(folder: ExtensionFolder, refused: Refused | null): VerifiedExtension {
  const bundleDigest = folder.signature === undefined ? null : contentDigest(folder.signature);
  const trust = bundleDigest === null ? "unsigned" : "untrusted";
  return VerifiedExtension.admitUnverified(folder, { trust, bundleDigest, check: refused?.check ?? null });
}
