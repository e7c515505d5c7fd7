import { resolve } from "node:path";
import { deepFreeze } from "../kernel/json.ts";
import { defaultForm } from "./check.ts";
import type { GatewayConfig, KeyConfig, PackConfig, UpstreamConfig } from "./gateway-config.ts";
import { buildConfig } from "./load.ts";

export interface LocalOptions {
  readonly dataDir: string;
  readonly packs: readonly PackConfig[];
  readonly upstreams: readonly UpstreamConfig[];
  readonly keys: readonly KeyConfig[];
}

/** The configuration of local mode, which has no file: every default, on loopback, and keys required. */
export function localConfig({ dataDir, packs, upstreams, keys }: LocalOptions): GatewayConfig {
  const defaults = buildConfig(defaultForm(), { keyHashes: [], upstreams: [] }, resolve("gateway.yaml"));
  return deepFreeze({
    ...defaults,
    source: null,
    dataDir: resolve(dataDir),
    keys,
    upstreams,
    policy: { ...defaults.policy, packs },
  });
}
