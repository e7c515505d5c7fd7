import { Command } from "commander";
import type { ProviderView } from "../provider/view.ts";
import type { UpstreamHealth } from "../upstream/connection.ts";
import { type AdminOptions, adminOption } from "./admin-client.ts";
import { type Column, printWhole } from "./list.ts";

interface Output extends AdminOptions {
  readonly json?: true;
}

const upstreamColumns: readonly Column<UpstreamHealth>[] = [
  { title: "upstream", of: ({ name }) => name },
  { title: "state", of: ({ state }) => state },
  { title: "transport", of: ({ transport }) => transport },
  { title: "connections", isNumber: true, of: ({ connections }) => connections },
  { title: "failures", isNumber: true, of: ({ failures }) => failures },
  { title: "why", of: ({ reason = "" }) => reason },
];

const providerColumns: readonly Column<ProviderView>[] = [
  { title: "provider", of: ({ name }) => name },
  { title: "state", of: stateOf },
  { title: "type", of: ({ type }) => type },
  { title: "in flight", isNumber: true, of: (provider) => provider.requests_in_flight },
  { title: "failures", isNumber: true, of: ({ failures }) => failures },
  { title: "models", of: ({ models }) => models.join(" ") },
  { title: "why", of: ({ last_fault: fault }) => fault ?? "" },
];

/** `gateway upstreams`: how the MCP servers of a running gateway fare. */
export function upstreamsCommand(): Command {
  const upstreams = new Command("upstreams").description("the MCP servers behind a running gateway");
  listing(upstreams, "print how each fares").action(({ json, ...options }: Output) =>
    printWhole(options, "/admin/v1/upstreams", { json, columns: upstreamColumns }),
  );
  return upstreams;
}

/** `gateway providers`: the same of those that serve models. */
export function providersCommand(): Command {
  const providers = new Command("providers").description("the providers of models behind a running gateway");
  listing(providers, "print how each fares, and its models").action(({ json, ...options }: Output) =>
    printWhole(options, "/admin/v1/providers", { json, columns: providerColumns }),
  );
  return providers;
}

function listing(parent: Command, description: string): Command {
  return parent
    .command("list")
    .description(description)
    .addOption(adminOption())
    .option("--json", "print JSON, one line each");
}

function stateOf({ enabled, breaker, rests_for_ms: restMs }: ProviderView): string {
  if (!enabled) return "disabled";
  if (breaker === "closed") return "up";
  return breaker === "half_open" ? "tried again" : `rests for ${Math.ceil(restMs / 1_000)} s`;
}
