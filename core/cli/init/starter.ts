import { annotateConfig, annotateTrust } from "../../config/annotated-yaml.ts";
import type { Json, JsonObject } from "../../kernel/json.ts";
import type { UpstreamConfig } from "../../kernel/upstream-config.ts";
import { demoUpstream } from "../../upstream/demo/upstream.ts";

/** Copied from the shipped packs, and signed. */
export const starterPacks = ["baseline", "session-watch"] as const;

/** The keys of a new installation: one for agents, which cannot review what it asks for, and one for who reviews. */
export const starterKeys = [
  { id: "admin", role: "admin" },
  { id: "agent", role: "viewer" },
] as const;

/** An MCP server, by its URL or by the program that is started. */
export type StarterUpstream = { readonly url: string } | { readonly command: string; readonly args: readonly string[] };

export interface Starter {
  readonly tenant: string;
  readonly firstPort: number;
  /** By the id of the key. */
  readonly keyHashes: Readonly<Record<string, string>>;
  /** Null: the demo server. */
  readonly upstream: StarterUpstream | null;
}

const configIntro =
  "The gateway's configuration, as `gateway init` made it. Relative paths start at this file's folder. " +
  "`gateway config reference` says everything that can be set, `gateway config check` what is wrong, and " +
  "`gateway doctor` what is missing, such as `evidence.witnesses` and `resilience`.";

const trustIntro =
  "Whose signatures count. Whoever may change this file decides what policy the gateway runs. After a change of a pack: " +
  "`gateway pack sign <folder> --key signing-key.pem`.";

/** The text of `gateway.yaml`. */
export function starterConfig({ tenant, firstPort, keyHashes, upstream }: Starter): string {
  const step = firstPort === 0 ? 0 : 1;
  const form: JsonObject = {
    listen: {
      host: "127.0.0.1",
      gateway_port: firstPort,
      admin_port: firstPort + step,
      metrics_port: firstPort + 2 * step,
    },
    data_dir: "data",
    state: { enabled: true },
    keys: starterKeys.map(({ id, role }) => ({ id, tenant, role, key_hash: keyHashes[id] ?? null })),
    mcp_gateway: { require_auth: true },
    upstreams: [upstream === null ? demoForm(demoUpstream()) : upstreamForm(upstream)],
    policy: {
      packs: starterPacks.map((name) => ({ path: `policy-packs/${name}`, mode: "enforce" })),
      default_decision: "block",
    },
    extensions: { strict: true, trust_policy: "trust.yaml" },
    log: { level: "info" },
  };
  return annotateConfig(form, configIntro);
}

/** The text of `trust.yaml`: one signer, by its public key. */
export function starterTrust(publicKey: string): string {
  return annotateTrust({ any_of: { minimum: 1, signers: [{ name: "operator", key: publicKey }] } }, trustIntro);
}

function upstreamForm(upstream: StarterUpstream): Json {
  if ("url" in upstream) return { name: "tools", transport: "http", url: upstream.url };
  return { name: "tools", transport: "stdio", command: upstream.command, args: [...upstream.args] };
}

function demoForm(demo: UpstreamConfig): Json {
  if (demo.transport !== "stdio") throw new TypeError("demoForm: expected a process");
  const { name, transport, command, args, capabilities } = demo;
  return { name, transport, command, args: [...args], capabilities: { ...capabilities } };
}
