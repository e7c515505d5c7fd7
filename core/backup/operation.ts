import { GatewayError } from "../action/error.ts";
import type { Principal } from "../action/principal.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";
import { Type } from "../config/type.ts";
import type { WitnessPublisher } from "../evidence/witness/witness-publisher.ts";
import type { AdminHandlers, AdminOperations } from "../operation/operation.ts";
import { anyText, closed, enumOf, jsonResponse, page, paging, ref, time, wholeNumber } from "../operation/shape.ts";
import type { Backups } from "./backups.ts";

/** Backups of the whole gateway. */
export const backupOperations = {
  createBackup: {
    id: "admin.backup",
    method: "POST",
    path: "/admin/v1/resilience/backup",
    access: "backup.create",
    tag: "resilience",
    summary: "Start a backup of everything the gateway stores, while it serves",
    response: {
      status: 202,
      description: "The backup that was started.",
      content: { "application/json": ref("Backup") },
    },
    errors: ["NOT_FOUND", "ROLE_FORBIDDEN", "BACKUP_BUSY", "EVIDENCE_UNAVAILABLE"],
  },
  listBackups: {
    id: "admin.backups",
    method: "GET",
    path: "/admin/v1/resilience/backups",
    access: "backup.read",
    tag: "resilience",
    summary: "List backups, newest first",
    query: closed(paging),
    response: jsonResponse("A page of backups.", page(ref("Backup"))),
    errors: ["NOT_FOUND", "ROLE_FORBIDDEN"],
  },
} as const satisfies AdminOperations;

/** Components of the document. */
export const backupSchemas = {
  Backup: Type.Object({
    name: anyText,
    state: enumOf(["writing", "verifying", "complete", "failed"]),
    made_at: time,
    bytes: wholeNumber,
  }),
};

interface BackupSources {
  readonly config: Pick<GatewayConfig, "resilience">;
  /** Null where `resilience.enabled` is false. */
  readonly backups: Backups | null;
  readonly witnessPublisher: Pick<WitnessPublisher, "publish">;
}

/**
 * Handlers of backups. A backup contains every tenant. Throw NOT_FOUND where backups are disabled, and ROLE_FORBIDDEN
 * for callers of a tenant other than `resilience.tenant`.
 */
export function backupHandlers({
  config,
  backups,
  witnessPublisher,
}: BackupSources): AdminHandlers<typeof backupOperations> {
  const openTo = ({ tenant }: Principal): Backups => {
    if (backups === null)
      throw new GatewayError("NOT_FOUND", "`resilience.enabled` is false: this gateway makes no backups");
    checkTenant(config.resilience.tenant, tenant);
    return backups;
  };
  return {
    createBackup: async (caller) => openTo(caller).begin(caller, () => witnessPublisher.publish()),
    listBackups: async (caller, { query }) => openTo(caller).list(query),
  };
}

function checkTenant(expected: string | null, got: string): void {
  if (expected === got) return;
  throw new GatewayError(
    "ROLE_FORBIDDEN",
    expected === null
      ? "a backup contains every tenant: name the tenant that makes them in `resilience.tenant` and restart"
      : "expected a key of the tenant that `resilience.tenant` names",
  );
}
