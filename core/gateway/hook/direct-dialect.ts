import type { SqlDialect } from "../../action/action-fact.ts";
import { compileGlob } from "../../action/glob.ts";
import type { GatewayConfig } from "../../config/gateway-config.ts";

/** Returns the finder of the dialect that the operator states for the SQL of direct actions: that of the first entry that fits. */
export function directDialects(
  stated: GatewayConfig["hooks"]["dialects"],
): (tool: string, target: string) => SqlDialect | undefined {
  const entries = stated.map(({ tool, target, dialect }) => ({
    tool: compileGlob(tool),
    target: compileGlob(target),
    dialect,
  }));
  return (tool, target) => entries.find((each) => each.tool.test(tool) && each.target.test(target))?.dialect;
}
