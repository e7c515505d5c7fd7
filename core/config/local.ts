import { resolve } from "node:path";
import { deepFreeze } from "../kernel/json.ts";
import type { ModelRoute } from "../kernel/provider-config.ts";
import { defaultForm } from "./check.ts";
import type { GatewayConfig, KeyConfig, PackConfig, UpstreamConfig } from "./gateway-config.ts";
import { buildConfig } from "./load.ts";

export interface LocalOptions {
  readonly dataDir: string;
  readonly packs: readonly PackConfig[];
  readonly upstreams: readonly UpstreamConfig[];
  readonly keys: readonly KeyConfig[];
  /** The gateway port; the admin and metrics ports follow it. 0: any free ports. Left out: the defaults. */
  readonly firstPort?: number;
}

/** The configuration of local mode, which has no file: every default, on loopback, keys required, and the model `mock`. */
export function localConfig({ dataDir, packs, upstreams, keys, firstPort }: LocalOptions): GatewayConfig {
  const defaults = buildConfig(
    defaultForm(),
    {
      keyHashes: [],
      upstreams: [],
      providers: [null],
      witnesses: [],
      webhooks: [],
      telemetry: { values: {}, origins: {} },
    },
    resolve("gateway.yaml"),
    null,
  );
  return deepFreeze({
    ...defaults,
    source: null,
    listen: { ...defaults.listen, ...(firstPort === undefined ? {} : portsFrom(firstPort)) },
    dataDir: resolve(dataDir),
    keys,
    upstreams,
    modelGateway: { ...defaults.modelGateway, routes: [mockRoute] },
    policy: { ...defaults.policy, packs },
  });
}

/** To the provider that there is without a file. */
const mockRoute: ModelRoute = {
  model: "mock",
  steps: [{ provider: "mock", model: "mock", weight: null }],
  fallback: false,
  canary: null,
};

function portsFrom(first: number): Pick<GatewayConfig["listen"], "gatewayPort" | "adminPort" | "metricsPort"> {
  const step = first === 0 ? 0 : 1;
  return { gatewayPort: first, adminPort: first + step, metricsPort: first + 2 * step };
}
