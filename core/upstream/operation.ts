import { capabilities } from "../action/capability.ts";
import { roles } from "../action/role.ts";
import { Type } from "../config/type.ts";
import type { AdminHandlers, AdminOperations } from "../operation/operation.ts";
import { anyText, enumOf, jsonResponse, nullable, whole, wholeNumber } from "../operation/shape.ts";
import type { UpstreamFleet } from "./fleet.ts";

const upstream = Type.Object({
  name: anyText,
  transport: enumOf(["stdio", "http", "sse"]),
  state: enumOf(["idle", "starting", "up", "down"]),
  connections: wholeNumber,
  failures: wholeNumber,
  reason: Type.Optional(anyText),
  hidden: Type.Array(
    Type.Object({
      tool: anyText,
      role: enumOf(roles),
      rule: nullable(anyText),
      reason: anyText,
    }),
    { description: "Tools that policy hid from agents of the tenant when they last listed them, and the rule" },
  ),
  contradictions: Type.Array(
    Type.Object({ tool: anyText, stated: enumOf(capabilities), annotated: enumOf(capabilities) }),
    { description: "Tools whose annotations claim more than the configuration states, which is in force" },
  ),
});

/** MCP upstreams. */
export const upstreamOperations = {
  listUpstreams: {
    id: "admin.upstreams",
    method: "GET",
    path: "/admin/v1/upstreams",
    access: "upstream.read",
    tag: "traffic",
    summary: "List the upstreams, their health, and the tools that policy hides",
    response: jsonResponse("The whole list.", whole(upstream)),
    errors: [],
  },
} as const satisfies AdminOperations;

/** The handler of the list of upstreams. */
export function upstreamHandlers({
  fleet,
}: {
  readonly fleet: Pick<UpstreamFleet, "overview">;
}): AdminHandlers<typeof upstreamOperations> {
  return { listUpstreams: ({ tenant }) => ({ items: fleet.overview(tenant), next: null }) };
}
