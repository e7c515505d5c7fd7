import type { GatewayConfig } from "../config/gateway-config.ts";
import type { Ledger } from "../evidence/ledger.ts";
import { anonymousPrincipal } from "../identity/anonymous.ts";
import type { KeyRing } from "../identity/key-ring.ts";
import { GatewayError } from "../kernel/error.ts";
import type { Principal } from "../kernel/principal.ts";
import type { KillTarget } from "../session/kill.ts";
import type { KillSwitch } from "../session/kill-switch.ts";
import { checkRole } from "./access.ts";

export interface KillAuthorityParts {
  readonly config: Pick<GatewayConfig, "sessions" | "mcpGateway">;
  readonly killSwitch: KillSwitch;
  readonly keys: KeyRing;
  readonly ledger: Ledger;
}

/** Who may stop and release what. That the caller's role may stop anything at all is decided by then. */
export class KillAuthority {
  readonly #parts: KillAuthorityParts;

  constructor(parts: KillAuthorityParts) {
    this.#parts = parts;
  }

  /**
   * Throws NOT_FOUND for a session or principal that the caller's tenant does not have, and ROLE_FORBIDDEN where the whole
   * gateway is not the caller's to stop.
   */
  async check(caller: Principal, target: KillTarget): Promise<void> {
    if (target.scope === "gateway") return this.#checkGateway(caller);
    // What is stopped can be released even where nothing else is left of it.
    if (target.scope === "tenant" || this.#isKilled(caller, target)) return;
    if (target.scope === "principal") return this.#checkPrincipal(caller, target.subject);
    await this.#checkSession(caller, target.subject);
  }

  #checkGateway(caller: Principal): void {
    const { gatewayTenant } = this.#parts.config.sessions;
    checkRole(caller, "gateway.kill");
    if (gatewayTenant === caller.tenant) return;
    throw new GatewayError(
      "ROLE_FORBIDDEN",
      gatewayTenant === null
        ? "nobody may stop the whole gateway: name a tenant in `sessions.gateway_tenant` and start again"
        : "expected an admin of the tenant that `sessions.gateway_tenant` names",
    );
  }

  #checkPrincipal({ tenant }: Principal, id: string): void {
    const { keys, config } = this.#parts;
    const isAnonymous = config.mcpGateway.anonymousTenant === tenant && anonymousPrincipal(tenant).id === id;
    if (!isAnonymous && !keys.names(tenant, id)) throw new GatewayError("NOT_FOUND", "no such principal");
  }

  /** Evidence that cannot be read keeps nobody from stopping a session. */
  async #checkSession({ tenant }: Principal, id: string): Promise<void> {
    try {
      await this.#parts.ledger.records(tenant, id, { limit: 1 });
    } catch (cause) {
      if (GatewayError.from(cause).code === "NOT_FOUND") throw cause;
    }
  }

  #isKilled({ tenant }: Principal, target: KillTarget): boolean {
    try {
      return this.#parts.killSwitch.isKilled(tenant, target);
    } catch {
      return false;
    }
  }
}
