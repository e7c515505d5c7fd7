import { GatewayError } from "../action/error.ts";
import type { Principal } from "../action/principal.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";
import type { AdminHandlers } from "../operation/operation.ts";
import type { Backups } from "./backups.ts";

export interface BackupParts {
  readonly config: Pick<GatewayConfig, "resilience">;
  /** Null where `resilience.enabled` is false. */
  readonly backups: Backups | null;
}

/**
 * Handlers that make backups and list them. A backup is of the whole gateway; what is told of one is of no tenant.
 * Throw NOT_FOUND where there are none, and ROLE_FORBIDDEN where they are not the caller's tenant's.
 */
export function backupHandlers({ config, backups }: BackupParts): AdminHandlers<"admin.backup" | "admin.backups"> {
  const openTo = ({ tenant }: Principal): Backups => {
    if (backups === null)
      throw new GatewayError("NOT_FOUND", "`resilience.enabled` is false: this gateway makes no backups");
    checkTenant(config.resilience.tenant, tenant);
    return backups;
  };
  return {
    "admin.backup": async (ctx, caller) => {
      ctx.body = await openTo(caller).begin(caller);
      ctx.status = 202;
    },
    "admin.backups": async (ctx, caller, { query }) => {
      ctx.body = await openTo(caller).list(query);
    },
  };
}

function checkTenant(expected: string | null, got: string): void {
  if (expected === got) return;
  throw new GatewayError(
    "ROLE_FORBIDDEN",
    expected === null
      ? "a backup holds what all tenants have: name the tenant that makes them in `resilience.tenant` and start again"
      : "expected a key of the tenant that `resilience.tenant` names",
  );
}
