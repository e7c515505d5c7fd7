import { Type } from "@sinclair/typebox";
import type { AdminHandlers, AdminOperations } from "../operation/operation.ts";
import { anyText, enumOf, jsonResponse, whole, wholeNumber } from "../operation/shape.ts";
import type { UpstreamFleet } from "./fleet.ts";

const upstream = Type.Object({
  name: anyText,
  transport: enumOf(["stdio", "http", "sse"]),
  state: enumOf(["idle", "starting", "up", "down"]),
  connections: wholeNumber,
  failures: wholeNumber,
  reason: Type.Optional(anyText),
});

/** MCP upstreams. */
export const upstreamOperations = {
  listUpstreams: {
    id: "admin.upstreams",
    method: "GET",
    path: "/admin/v1/upstreams",
    access: "upstream.read",
    tag: "traffic",
    summary: "List the upstreams and their health",
    response: jsonResponse("The whole list.", whole(upstream)),
    errors: [],
  },
} as const satisfies AdminOperations;

/** The handler of the list of upstreams. */
export function upstreamHandlers({
  fleet,
}: {
  readonly fleet: Pick<UpstreamFleet, "health">;
}): AdminHandlers<typeof upstreamOperations> {
  return { listUpstreams: () => ({ items: fleet.health(), next: null }) };
}
