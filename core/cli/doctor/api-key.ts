import { contentDigest } from "../../kernel/digest.ts";
import { count, type Examine, type Finding, fail, ok, warn } from "./finding.ts";

/** Whether everybody who has to can get in, and nobody else. */
export const examineKeys: Examine = async ({ config, env }) => {
  const { keys, source, mcpGateway } = config;
  if (keys.length === 0 && source === null) return [ok("two are made at the first start")];
  if (keys.length === 0) {
    return [fail("there is none: nobody can authenticate", "`gateway keys new` prints one, and its entry for `keys`")];
  }
  const found: Finding[] = [
    ok(`${count(keys.length, "key")} of ${count(new Set(keys.map(({ tenant }) => tenant)).size, "tenant")}`),
  ];
  for (const tenant of new Set(keys.map((key) => key.tenant))) {
    if (keys.some((key) => key.tenant === tenant && key.role !== "viewer")) continue;
    const mend = `\`gateway keys new --tenant ${tenant} --role operator\` prints one`;
    found.push(
      warn(
        `nobody can review what agents of tenant \`${tenant}\` ask for: no key of role \`operator\` or \`admin\``,
        mend,
      ),
    );
  }
  if (!mcpGateway.requireAuth) {
    found.push(
      warn("MCP needs no key: whoever reaches the port is an agent", "set `mcp_gateway.require_auth` to true"),
    );
  }
  const own = env.GATEWAY_API_KEY ?? "";
  if (own !== "" && !keys.some(({ keyHash }) => keyHash === contentDigest(own))) {
    found.push(warn("GATEWAY_API_KEY holds no key of this configuration", "set it to one of them, or leave it out"));
  }
  return found;
};
