import type { Backups } from "../evidence/backup/backups.ts";
import { GatewayError } from "../kernel/error.ts";
import type { Handlers } from "./app.ts";
import { readPage } from "./page.ts";

export interface BackupParts {
  /** Null where `resilience.enabled` is false. */
  readonly backups: Backups | null;
}

/**
 * Handlers that make backups and list them. A backup is of the whole gateway; what is told of one is of no tenant.
 * Throws NOT_FOUND where there are none.
 */
export function backupHandlers({ backups }: BackupParts): Pick<Handlers, "admin.backup" | "admin.backups"> {
  return {
    "admin.backup": async (ctx, caller) => {
      ctx.body = await enabled(backups).begin(caller);
      ctx.status = 202;
    },
    "admin.backups": async (ctx) => {
      ctx.body = await enabled(backups).list(readPage(ctx));
    },
  };
}

function enabled(backups: Backups | null): Backups {
  if (backups !== null) return backups;
  throw new GatewayError("NOT_FOUND", "`resilience.enabled` is false: this gateway makes no backups");
}
