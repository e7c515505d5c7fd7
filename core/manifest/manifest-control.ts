import { GatewayError } from "../kernel/error.ts";
import type { Clock } from "../kernel/port.ts";
import { readPublicKey } from "../kernel/public-key.ts";
import { DriftPolicy, type DriftRule } from "./drift-policy.ts";
import { ManifestBook, type ManifestLog, type ManifestStore } from "./manifest-book.ts";
import type { TaskSigner } from "./reference.ts";
import { TaskBinding, type TaskBindingOptions } from "./task-binding.ts";

/** The evidence, as far as manifests need it. */
export interface ManifestLedger extends ManifestLog {
  status(): readonly { readonly tenant: string }[];
  refuse(tenant: string, reason: string): void;
}

export interface ManifestControlOptions {
  readonly store: ManifestStore;
  readonly ledger: ManifestLedger;
  readonly clock: Clock;
  readonly drift: DriftRule;
  /** `publicKey`: the base64 of an Ed25519 key. */
  readonly taskSigners: readonly { readonly id: string; readonly tenant: string; readonly publicKey: string }[];
  readonly hasActed: TaskBindingOptions["hasActed"];
}

export interface ManifestControl {
  readonly manifests: ManifestBook;
  readonly taskBinding: TaskBinding;
  readonly driftPolicy: DriftPolicy;
}

/** Every manifest in force, which sessions they are of, and what judges by them. A tenant whose manifests cannot be read is refused. */
export async function openManifestControl(options: ManifestControlOptions): Promise<ManifestControl> {
  const { store, ledger, clock, drift, taskSigners, hasActed } = options;
  const manifests = new ManifestBook({ store, log: ledger, clock });
  for (const { tenant } of ledger.status()) {
    try {
      await manifests.load(tenant);
    } catch (cause) {
      ledger.refuse(tenant, `its task manifests cannot be read: ${GatewayError.from(cause).message}`);
    }
  }
  const signers = taskSigners.map(signerOf);
  return {
    manifests,
    taskBinding: new TaskBinding({ store, log: ledger, clock, manifests, signers, hasActed }),
    driftPolicy: new DriftPolicy({ rule: drift, manifests, clock }),
  };
}

function signerOf({ id, tenant, publicKey }: ManifestControlOptions["taskSigners"][number]): TaskSigner {
  const known = readPublicKey(publicKey);
  if (known?.key.asymmetricKeyType !== "ed25519") throw new TypeError(`signerOf: expected an Ed25519 key of \`${id}\``);
  return { id, tenant, key: known.key };
}
