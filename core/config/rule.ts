import { mostTaints } from "../kernel/policy.ts";
import { checkApprovals } from "./approval-rule.ts";
import { type FaultList, quoteInput } from "./fault.ts";
import type { Draft } from "./field.ts";
import { isLoopback } from "./loopback.ts";
import { checkProviders } from "./provider-rule.ts";
import { refuseRepeats } from "./repetition.ts";
import type { FileForm } from "./schema.ts";
import type { Secrets } from "./secret.ts";
import { checkSessions } from "./session-rule.ts";
import { checkUpstreams } from "./upstream-rule.ts";
import { checkUsage } from "./usage-rule.ts";

/**
 * Checks what no single key can say. Each misfit is a fault.
 * A rule is silent where a value it needs was a fault already.
 */
export function checkRules(draft: Draft<FileForm>, secrets: Secrets, faults: FaultList): void {
  if (draft === undefined) return;
  checkPorts(draft.listen, faults);
  checkExposure(draft, faults);
  checkKeys(draft.keys, secrets, faults);
  checkAnonymous(draft.mcp_gateway, faults);
  checkGatewayTenants(draft, faults);
  checkUpstreams(draft.upstreams, faults);
  checkProviders(draft, faults);
  checkUsage(draft, faults);
  checkPolicy(draft.policy, faults);
  checkExtensions(draft.extensions, faults);
  checkBodyTime(draft.limits, faults);
  checkWitnesses(draft.evidence, faults);
  checkApprovals(draft, faults);
  checkBackups(draft, faults);
  checkTelemetry(draft.telemetry, faults);
  checkSessions(draft.sessions, faults);
}

function checkPorts(listen: Draft<FileForm["listen"]>, faults: FaultList): void {
  const names = ["gateway_port", "admin_port", "metrics_port"] as const;
  refuseRepeats(
    names.map((name) => (listen?.[name] === 0 ? undefined : listen?.[name])),
    (index) => `listen.${names[index]}`,
    "a port of its own",
    faults,
  );
}

/** An address that others reach must not serve whoever asks. */
function checkExposure({ listen, keys, mcp_gateway: mcp }: NonNullable<Draft<FileForm>>, faults: FaultList): void {
  const exposed = (["host", "admin_host"] as const).find((key) => !isLoopback(listen?.[key] ?? "localhost"));
  if (listen === undefined || exposed === undefined) return;
  const because = `because \`listen.${exposed}\` is ${quoteInput(listen[exposed] ?? "")}, not a loopback address`;
  if (keys?.length === 0) faults.add("keys", `expected at least one key, got none, ${because}`);
  if (mcp?.require_auth === false) {
    faults.add("mcp_gateway.require_auth", `expected \`true\`, got \`false\`, ${because}`);
  }
  if (listen.allowed_hosts?.length === 0) {
    faults.add("listen.allowed_hosts", `expected the names clients use, got none, ${because}`);
  }
}

function checkKeys(keys: Draft<FileForm["keys"]>, secrets: Secrets, faults: FaultList): void {
  const at = (index: number): string => `keys[${index}]`;
  const ids = keys?.map((key) => key?.id) ?? [];
  refuseRepeats(ids, (index) => `${at(index)}.id`, "an id of its own", faults);
  // One key in two tenants would be a way from one into the other.
  refuseRepeats(secrets.keyHashes, at, "a key of its own", faults, "a key");
  ids.forEach((id, index) => {
    if (id === "anonymous")
      faults.add(`${at(index)}.id`, "expected another id, got `anonymous`, the caller without a key");
  });
}

function checkAnonymous(mcp: Draft<FileForm["mcp_gateway"]>, faults: FaultList): void {
  if (mcp?.require_auth !== false || mcp.anonymous_tenant !== null) return;
  faults.add("mcp_gateway.anonymous_tenant", "expected a tenant, got nothing, because `require_auth` is `false`");
}

/** A tenant that is misspelt would be noticed on the day when everything has to stop, or a backup is needed. */
function checkGatewayTenants({ keys, sessions, resilience }: NonNullable<Draft<FileForm>>, faults: FaultList): void {
  const named = { "sessions.gateway_tenant": sessions?.gateway_tenant, "resilience.tenant": resilience?.tenant };
  for (const [place, tenant] of Object.entries(named)) {
    if (keys === undefined || tenant === undefined || tenant === null) continue;
    if (keys.some((key) => key === undefined || (key.tenant === tenant && key.role === "admin"))) continue;
    const got = quoteInput(tenant);
    faults.add(place, `expected a tenant that a key of role \`admin\` belongs to, got ${got}`);
  }
}

function checkPolicy(policy: Draft<FileForm["policy"]>, faults: FaultList): void {
  const packs = policy?.packs;
  const paths = packs?.map((pack) => pack?.path) ?? [];
  refuseRepeats(paths, (index) => `policy.packs[${index}].path`, "a path of its own", faults);
  const plugins = policy?.plugins?.map((plugin) => plugin?.path) ?? [];
  refuseRepeats(plugins, (index) => `policy.plugins[${index}].path`, "a path of its own", faults);
  policy?.plugins?.forEach((plugin, index) => {
    checkTaints(plugin, `policy.plugins[${index}].taints`, faults);
  });
  const unguarded = packs?.every((pack) => pack?.mode === "shadow") ?? false;
  if (policy?.default_decision === "allow" && unguarded) {
    const text =
      "expected `block` or `review`, got `allow`, because no pack is in mode `enforce`: everything would be allowed";
    faults.add("policy.default_decision", text);
  }
}

/** A list that is too long is refused with the configuration, not with each answer. */
function checkTaints(plugin: Draft<FileForm["policy"]["plugins"][number]>, path: string, faults: FaultList): void {
  const { taints = [], phases } = plugin ?? {};
  if (taints.length > mostTaints) faults.add(path, `expected at most ${mostTaints} taints, got ${taints.length}`);
  if (taints.length > 0 && phases?.every((phase) => phase === "list"))
    faults.add(path, "expected `input` or `output` among `phases`: what a tool is called taints nobody");
}

/** A verifier that trusts nobody must not look like one that trusts everybody. */
function checkExtensions(extensions: Draft<FileForm["extensions"]>, faults: FaultList): void {
  if (extensions?.strict !== true || extensions.trust_policy !== null) return;
  faults.add("extensions.trust_policy", "expected a trust policy, got none, because `extensions.strict` is `true`");
}

function checkWitnesses(evidence: Draft<FileForm["evidence"]>, faults: FaultList): void {
  const names = evidence?.witnesses?.map((witness) => witness?.name) ?? [];
  refuseRepeats(names, (index) => `evidence.witnesses[${index}].name`, "a name of its own", faults);
}

function checkTelemetry(telemetry: Draft<FileForm["telemetry"]>, faults: FaultList): void {
  const { metrics_interval_ms: interval = 0, endpoint, exemplars } = telemetry ?? {};
  if (interval > 0 && interval < 1_000) {
    faults.add("telemetry.metrics_interval_ms", `expected 0, or 1000 to 3600000, got ${interval}`);
  }
  if (exemplars === true && endpoint === null) {
    faults.add(
      "telemetry.exemplars",
      "expected `false`, got `true`, because there is no `endpoint`: nothing is traced",
    );
  }
}

/** What is kept in memory alone has keys that no restore can bring back. */
function checkBackups({ resilience, state }: NonNullable<Draft<FileForm>>, faults: FaultList): void {
  if (resilience?.enabled !== true || state?.enabled !== false) return;
  faults.add("resilience.enabled", "expected `false`, got `true`, because `state.enabled` is `false`");
}

function checkBodyTime(limits: Draft<FileForm["limits"]>, faults: FaultList): void {
  const { headers_ms: headers, body_ms: body } = limits ?? {};
  if (headers === undefined || body === undefined || headers <= body) return;
  faults.add("limits.body_ms", `expected at least \`limits.headers_ms\` (${headers}), got ${body}`);
}
