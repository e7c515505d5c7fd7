import { readPublicKey } from "../kernel/public-key.ts";
import type { FaultList } from "./fault.ts";
import type { Draft } from "./field.ts";
import { refuseRepeats } from "./repetition.ts";
import type { FileForm } from "./schema.ts";

/** Each is tried in turn on whatever claims to be a reference. */
const mostSignersOfTenant = 8;

/** The part of `checkRules` about sessions. */
export function checkSessions(sessions: Draft<FileForm["sessions"]>, faults: FaultList): void {
  const at = (index: number): string => `sessions.task_signers[${index}]`;
  const signers = sessions?.task_signers ?? [];
  refuseRepeats(
    signers.map((signer) => signer?.id),
    (index) => `${at(index)}.id`,
    "an id of its own",
    faults,
  );
  const count = new Map<string, number>();
  signers.forEach((signer, index) => {
    const { tenant, public_key: key } = signer ?? {};
    if (key !== undefined && readPublicKey(key)?.key.asymmetricKeyType !== "ed25519") {
      faults.add(`${at(index)}.public_key`, "expected an Ed25519 public key, got something else");
    }
    if (tenant === undefined) return;
    const others = count.get(tenant) ?? 0;
    count.set(tenant, others + 1);
    if (others === mostSignersOfTenant) {
      faults.add(`${at(index)}.tenant`, `expected at most ${mostSignersOfTenant} signers of a tenant, got more`);
    }
  });
}
