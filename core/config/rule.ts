import { maxTaints } from "../action/policy.ts";
import { readPublicKey } from "../action/signing-key.ts";
import type { Draft } from "./check.ts";
import { checkConsole } from "./console-rule.ts";
import { checkEffects } from "./effect-schema.ts";
import { checkStatements } from "./fact-schema.ts";
import { type FaultList, quoteInput } from "./fault.ts";
import type { FileDraft, FileForm, UpstreamForm } from "./file-schema.ts";
import { isReservedHeader } from "./gateway-config.ts";
import { checkOauth } from "./oauth-rule.ts";
import { checkProviders } from "./provider-rule.ts";
import { isLoopback, refuseRepeats, requireEncryption } from "./repetition.ts";
import { ownRights, switchProblem } from "./run-as.ts";
import type { Secrets } from "./secret.ts";

/**
 * Checks rules across keys. Each violation is a fault.
 * A rule is silent where a value it needs was a fault already.
 */
export function checkRules(draft: FileDraft | undefined, secrets: Secrets, faults: FaultList): void {
  if (draft === undefined) return;
  checkPorts(draft.listen, faults);
  checkExposure(draft, faults);
  checkKeys(draft.keys, secrets, faults);
  checkAnonymous(draft.mcp_gateway, faults);
  checkOauth(draft, faults);
  checkConsole(draft, faults);
  checkGatewayTenants(draft, faults);
  checkUpstreams(draft.upstreams, faults);
  checkEffects(draft.effects, faults);
  checkProviders(draft, faults);
  checkUsage(draft, faults);
  checkPolicy(draft.policy, faults);
  checkExtensions(draft.extensions, faults);
  checkBodyTime(draft.limits, faults);
  checkWitnesses(draft.evidence, faults);
  checkApprovals(draft, faults);
  checkState(draft, faults);
  checkStore(draft, faults);
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

/** An address that other machines reach must require keys. */
function checkExposure({ listen, keys, mcp_gateway: mcp }: FileDraft, faults: FaultList): void {
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

/** A misspelt tenant would otherwise be noticed only in an emergency. */
function checkGatewayTenants({ keys, sessions, resilience }: FileDraft, faults: FaultList): void {
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
  const engines = policy?.engines?.map((engine) => engine?.path) ?? [];
  refuseRepeats(engines, (index) => `policy.engines[${index}].path`, "a path of its own", faults);
  policy?.engines?.forEach((engine, index) => {
    const { url, token_env: variable } = engine ?? {};
    if (typeof url === "string" && typeof variable === "string")
      requireEncryption(url, `policy.engines[${index}].url`, "token_env", faults);
  });
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
  if (taints.length > maxTaints) faults.add(path, `expected at most ${maxTaints} taints, got ${taints.length}`);
  if (taints.length > 0 && phases?.every((phase) => phase === "list"))
    faults.add(path, "expected `input` or `output` among `phases`: the name of a tool adds no taints");
}

/** A verifier without a trust policy must not look like one that trusts everything. */
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

/** State in memory has keys that no restore can bring back, and is no longer there when a mark could be compared with it. */
function checkState({ resilience, state }: FileDraft, faults: FaultList): void {
  if (state?.enabled !== false) return;
  if (resilience?.enabled === true) {
    faults.add("resilience.enabled", "expected `false`, got `true`, because `state.enabled` is `false`");
  }
  if (typeof state.mark === "string") faults.add("state.mark", "expected none, because `state.enabled` is `false`");
}

/** A mark belongs to one data folder; of replicas each has its own, and the database's marks tell what is behind. */
function checkStore({ store, state }: FileDraft, faults: FaultList): void {
  if (store?.engine !== "postgres") return;
  const because = "because `store.engine` is `postgres`";
  if (state?.enabled === false) faults.add("state.enabled", `expected \`true\`, got \`false\`, ${because}`);
  if (typeof state?.mark === "string") faults.add("state.mark", `expected none, ${because}`);
}

function checkBodyTime(limits: Draft<FileForm["limits"]>, faults: FaultList): void {
  const { headers_ms: headers, body_ms: body } = limits ?? {};
  if (headers === undefined || body === undefined || headers <= body) return;
  faults.add("limits.body_ms", `expected at least \`limits.headers_ms\` (${headers}), got ${body}`);
}

/** Secrets of one webhook: an old and a new one, with room for a mistake. */
const maxSecrets = 4;

/** The part of `checkRules` about approvals. */
function checkApprovals({ approvals, keys }: FileDraft, faults: FaultList): void {
  const at = (index: number): string => `approvals.webhooks[${index}]`;
  const webhooks = approvals?.webhooks ?? [];
  refuseRepeats(
    webhooks.map((webhook) => webhook?.name),
    (index) => `${at(index)}.name`,
    "a name of its own",
    faults,
  );
  const tenants = keys?.map((key) => key?.tenant);
  webhooks.forEach((webhook, index) => {
    checkTenant(webhook?.tenant, tenants, `${at(index)}.tenant`, faults);
    checkSecrets(webhook?.secrets_env ?? [], `${at(index)}.secrets_env`, faults);
  });
}

/** A tenant without keys is misspelt: it has no reviewers. */
function checkTenant(
  tenant: string | undefined,
  known: readonly (string | undefined)[] | undefined,
  path: string,
  faults: FaultList,
): void {
  if (tenant === undefined || known === undefined || known.includes(undefined) || known.includes(tenant)) return;
  faults.add(path, `expected the tenant of a key, got ${quoteInput(tenant)}`);
}

function checkSecrets(variables: readonly (string | undefined)[], path: string, faults: FaultList): void {
  if (variables.length > maxSecrets)
    faults.add(path, `expected at most ${maxSecrets} variables, got ${variables.length}`);
  refuseRepeats(variables, (index) => `${path}[${index}]`, "each variable once", faults);
}

/** Each is tried in turn on every reference. */
const maxSignersOfTenant = 8;

/** The part of `checkRules` about sessions. */
function checkSessions(sessions: Draft<FileForm["sessions"]>, faults: FaultList): void {
  const at = (index: number): string => `sessions.task_signers[${index}]`;
  const signers = sessions?.task_signers ?? [];
  refuseRepeats(
    signers.map((signer) => signer?.id),
    (index) => `${at(index)}.id`,
    "an id of its own",
    faults,
  );
  const count = new Map<string, number>();
  signers.forEach((signer, index) => {
    const { tenant, public_key: key } = signer ?? {};
    if (key !== undefined && readPublicKey(key)?.key.asymmetricKeyType !== "ed25519") {
      faults.add(`${at(index)}.public_key`, "expected an Ed25519 public key, got something else");
    }
    if (tenant === undefined) return;
    const others = count.get(tenant) ?? 0;
    count.set(tenant, others + 1);
    if (others === maxSignersOfTenant) {
      faults.add(`${at(index)}.tenant`, `expected at most ${maxSignersOfTenant} signers of a tenant, got more`);
    }
  });
}

const secretHeader = /^(?:authorization|proxy-authorization|cookie|(?:x-)?api-key|.*-(?:token|secret|api-key))$/i;
const secretVariable = /(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY|PRIVATE_KEY)$/i;

/** The part of `checkRules` about upstreams. */
function checkUpstreams(upstreams: Draft<readonly UpstreamForm[]>, faults: FaultList): void {
  const at = (index: number): string => `upstreams[${index}]`;
  const names = upstreams?.map((upstream) => upstream?.name) ?? [];
  refuseRepeats(names, (index) => `${at(index)}.name`, "a name of its own", faults);
  const prefixes = upstreams?.map((upstream) => upstream?.tool_prefix || undefined) ?? [];
  refuseRepeats(prefixes, (index) => `${at(index)}.tool_prefix`, "a prefix of its own", faults);
  upstreams?.forEach((upstream, index) => {
    if (upstream === undefined) return;
    checkTimeouts(upstream, at(index), faults);
    checkVariables(upstream, at(index), faults);
    checkHeaders(upstream, at(index), faults);
    checkRunAs(upstream, `${at(index)}.run_as`, faults);
    checkStatements(upstream.facts, `${at(index)}.facts`, faults);
  });
}

/** A server that cannot be started as its user is not started as another. */
function checkRunAs({ run_as: runAs }: NonNullable<Draft<UpstreamForm>>, path: string, faults: FaultList): void {
  if (runAs === undefined || runAs === null) return;
  const problem = switchProblem(ownRights());
  if (problem === undefined) return;
  const what = "a gateway that runs as root, with CAP_SETUID, CAP_SETGID and CAP_KILL";
  faults.add(path, `expected ${what}, got ${problem}; or run the server by itself and reach it over HTTP`);
}

function checkTimeouts(upstream: NonNullable<Draft<UpstreamForm>>, path: string, faults: FaultList): void {
  const { timeout_ms: usual, max_timeout_ms: max } = upstream;
  if (usual === undefined || max === undefined || usual <= max) return;
  faults.add(`${path}.max_timeout_ms`, `expected at least \`timeout_ms\` (${usual}), got ${max}`);
}

function checkVariables(upstream: NonNullable<Draft<UpstreamForm>>, path: string, faults: FaultList): void {
  const literal = Object.keys(upstream.env ?? {});
  const copied = upstream.env_from ?? [];
  const pathOf = (index: number): string =>
    index < literal.length ? `${path}.env.${literal[index]}` : `${path}.env_from[${index - literal.length}]`;
  refuseRepeats([...literal, ...copied], pathOf, "each variable once", faults);
  for (const name of literal.filter((name) => secretVariable.test(name))) {
    faults.add(`${path}.env.${name}`, "expected a secret to come by `env_from`, got its value");
  }
}

function checkHeaders(upstream: NonNullable<Draft<UpstreamForm>>, path: string, faults: FaultList): void {
  const literal = Object.keys(upstream.headers ?? {});
  const names = [...literal, ...Object.keys(upstream.headers_env ?? {})];
  const pathOf = (index: number): string =>
    `${path}.${index < literal.length ? "headers" : "headers_env"}.${names[index]}`;
  refuseRepeats(
    names.map((name) => name.toLowerCase()),
    pathOf,
    "each header once",
    faults,
  );
  names.forEach((name, index) => {
    if (!isReservedHeader(name)) return;
    faults.add(pathOf(index), `expected a header of the operator's, got ${quoteInput(name)}, which the gateway sets`);
  });
  for (const name of literal.filter((name) => secretHeader.test(name))) {
    faults.add(`${path}.headers.${name}`, "expected a secret to come by `headers_env`, got its value");
  }
}

type BudgetForm = FileForm["usage"]["budgets"][number];

/** The part of `checkRules` about what may be asked of models. */
function checkUsage(draft: FileDraft, faults: FaultList): void {
  const at = (index: number): string => `usage.budgets[${index}]`;
  const budgets = draft.usage?.budgets ?? [];
  refuseRepeats(
    budgets.map((budget) => (budget?.tenant === undefined ? undefined : `${budget.tenant}/${budget.key ?? "*"}`)),
    at,
    "one budget of each tenant and key",
    faults,
  );
  const known = callersOf(draft);
  budgets.forEach((budget, index) => {
    if (budget === undefined) return;
    checkLimit(budget, at(index), faults);
    if (known !== undefined) checkSpender(budget, known, at(index), faults);
  });
}

interface Caller {
  readonly tenant: string;
  readonly key: string;
}

/** The callers of models, which all have a key. Undefined where one of the keys was a fault already. */
function callersOf({ keys }: FileDraft): readonly Caller[] | undefined {
  const callers: Caller[] = [];
  for (const key of keys ?? [undefined]) {
    if (key?.id === undefined || key.tenant === undefined) return undefined;
    callers.push({ tenant: key.tenant, key: key.id });
  }
  return callers;
}

/** A budget of an unknown key is a misspelt one, whose tokens nothing would bound. */
function checkSpender(
  { tenant, key }: NonNullable<Draft<BudgetForm>>,
  known: readonly Caller[],
  path: string,
  faults: FaultList,
): void {
  if (tenant === undefined || key === undefined) return;
  if (!known.some((caller) => caller.tenant === tenant)) {
    faults.add(`${path}.tenant`, `expected the tenant of a key, got ${quoteInput(tenant)}`);
  } else if (key !== null && !known.some((caller) => caller.tenant === tenant && caller.key === key)) {
    faults.add(`${path}.key`, `expected the id of a key of \`${tenant}\`, got ${quoteInput(key)}`);
  }
}

function checkLimit(budget: NonNullable<Draft<BudgetForm>>, path: string, faults: FaultList): void {
  if (budget.tokens_per_day !== null || budget.tokens_per_month !== null) return;
  faults.add(path, "expected `tokens_per_day` or `tokens_per_month`, got neither");
}
