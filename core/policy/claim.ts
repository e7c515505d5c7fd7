import type { VerifiedExtension } from "../kernel/verified-extension.ts";
import type { Faults, Place } from "./fault.ts";

/** What a manifest says of itself. */
export interface Claimed {
  readonly name: string;
  readonly version: string;
  readonly sequence: number;
  readonly place: Place;
}

/** What was signed under one name must not be loaded under another: signers and sequences go by it. */
export function checkClaim(manifest: Claimed, { claim }: VerifiedExtension, faults: Faults): void {
  if (claim === null) return;
  for (const key of ["name", "version", "sequence"] as const) {
    if (manifest[key] === claim[key]) continue;
    faults.add(manifest.place, `expected \`${key}\` as it was signed, \`${claim[key]}\`, got \`${manifest[key]}\``);
  }
}
