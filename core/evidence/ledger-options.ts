import type { Clock, Random } from "../kernel/port.ts";
import type { CommitObserver } from "./group-commit.ts";
import type { KeyStore } from "./key-folder.ts";
import type { EvidenceStore } from "./key-space.ts";
import type { FieldPolicy } from "./private-field.ts";
import type { WrappingKeyStore } from "./wrapping-key-folder.ts";

/** What a ledger stands on. */
export interface LedgerOptions {
  readonly store: EvidenceStore;
  /** Whether this process is still the only one that can have the store open. */
  readonly holdsStore: () => boolean;
  /** The file of the high-water marks; null with a store in memory. */
  readonly highWaterPath: string | null;
  /** The signing keys. */
  readonly keys: KeyStore;
  readonly wrappingKeys: WrappingKeyStore;
  /** What is kept of arguments and answers. */
  readonly fieldPolicy: FieldPolicy;
  readonly clock: Clock;
  readonly random: Random;
  /** Names this installation in every record. */
  readonly writerId: string;
  /** `sha256:<hex>` of the configuration in force. */
  readonly configDigest: string;
  /** Records that may wait for the disk, and actions that may wait for their outcome; 10,000 unless told. */
  readonly queueLimit?: number;
  readonly observer?: CommitObserver;
  readonly onWarning?: (message: string, fields: object) => void;
}
