import { type Capability, capabilities } from "../../action/capability.ts";
import { GatewayError } from "../../action/error.ts";
import { compileGlob, type Glob } from "../../action/glob.ts";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import type { DirectAction } from "./direct-action.ts";

type CapabilityStatement = GatewayConfig["hooks"]["capabilities"][number];

/** The capabilities that the operator states for direct actions. */
export class DirectCapabilities {
  readonly #statements: readonly (Omit<CapabilityStatement, "tool" | "target"> & {
    readonly tool: Glob;
    readonly target: Glob;
  })[];

  constructor(statements: readonly CapabilityStatement[]) {
    this.#statements = statements.map(({ tool, target, ...rest }) => ({
      ...rest,
      tool: compileGlob(tool),
      target: compileGlob(target),
    }));
  }

  /**
   * Returns the capability of an action: that of the operator's first statement that fits, else the usual one of its tool.
   * Throws INVALID_PARAMS where its asker claims a weaker one: an agent must not be able to call its own action harmless.
   */
  of(action: DirectAction): Capability {
    const { claimed } = action;
    const own = this.#stated(action) ?? action.usual;
    if (claimed === undefined || claimed === own) return own;
    const weakest = capabilities.indexOf(own);
    if (capabilities.indexOf(claimed) > weakest) return claimed;
    const fit = capabilities.slice(weakest).join(", ");
    throw new GatewayError(
      "INVALID_PARAMS",
      `expected \`capability\` to be one of ${fit}, got \`${claimed}\`: only \`hooks.capabilities\` of the gateway can state a weaker one`,
    );
  }

  #stated({ protocol, tool, target }: DirectAction): Capability | undefined {
    return this.#statements.find(
      (each) => each.protocol === protocol && each.tool.test(tool) && each.target.test(target),
    )?.capability;
  }
}
