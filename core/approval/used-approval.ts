import type { Approval } from "../kernel/approval.ts";

const most = 10_000;

/** Which approval an action used last, for the words to whoever repeats it: a bounded memory that decides nothing. */
export class UsedApprovals {
  readonly #byFingerprint = new Map<string, { readonly id: string; readonly state: "consumed" }>();

  add({ id, fingerprint }: Approval): void {
    this.#byFingerprint.delete(fingerprint);
    this.#byFingerprint.set(fingerprint, { id, state: "consumed" });
    if (this.#byFingerprint.size <= most) return;
    for (const oldest of this.#byFingerprint.keys()) {
      this.#byFingerprint.delete(oldest);
      return;
    }
  }

  find(fingerprint: string): { readonly id: string; readonly state: "consumed" } | undefined {
    return this.#byFingerprint.get(fingerprint);
  }
}
