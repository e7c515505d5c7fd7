import { readdir, readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { GatewayError } from "../../action/error.ts";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import type { TrustedSigner } from "../../config/trust-policy.ts";
import { measureFuelRate } from "../../plugin/fuel-rate.ts";
import { PluginPool } from "../../plugin/plugin-pool.ts";
import { loadExtensions } from "../../policy/extension-load.ts";
import { readExtensionFolder } from "../../trust/folder.ts";
import { describeRefusal } from "../../trust/refusal.ts";
import { readSigner } from "../../trust/signing.ts";
import type { ExtensionKind } from "../../trust/verified-extension.ts";
import { isRefused, readSigned } from "../../trust/verifier.ts";
import { count, type Examine, type Finding, fail, ok, warn } from "./finding.ts";

const soonMs = 30 * 86_400_000;
const maxFiles = 100;
const maxPem = 65_536;

/** Whose signatures count, until when, and whether the keys that make them are where they should be. */
export const examineTrust: Examine = async ({ config }) => {
  const { strict, trustPolicy } = config.extensions;
  const found: Finding[] = [];
  if (!strict) {
    const mend = "set `extensions.strict` to true, with a trust policy; `gateway init` shows both";
    found.push(warn("whoever can write a pack's folder decides: what is unsigned is loaded", mend));
  }
  if (trustPolicy !== null) {
    const signers = [...trustPolicy.allOf, ...(trustPolicy.anyOf?.signers ?? [])];
    found.push(...signers.flatMap(examineSigner), ...(await examineSignatures(config)));
    found.push(...(await findPrivateKeys(config, signers)));
  }
  return found.length === 0 ? [ok("nothing is loaded that nobody trusted vouches for, or soon will not be")] : found;
};

function examineSigner({ name, notAfter }: TrustedSigner): readonly Finding[] {
  const mend = "trust a new key in the trust policy, and sign again with it";
  return judgeEnd(`signer \`${name}\` counts`, notAfter, mend);
}

/** Signatures may end as well. */
async function examineSignatures({ policy }: GatewayConfig): Promise<readonly Finding[]> {
  const places = [
    ...policy.packs.map(({ path }) => ({ path, kind: "pack" as ExtensionKind })),
    ...policy.plugins.map(({ path }) => ({ path, kind: "plugin" as ExtensionKind })),
  ];
  const found: Finding[] = [];
  for (const { path, kind } of places) {
    const folder = await readExtensionFolder(path, kind).catch(() => undefined);
    const signed = folder === undefined ? undefined : readSigned(folder);
    if (signed === undefined || isRefused(signed)) continue;
    found.push(
      ...judgeEnd(
        `\`${path}\` is signed`,
        signed.statement.expiresAt,
        `\`gateway ${kind} sign\` with a later \`--expires\``,
      ),
    );
  }
  return found;
}

function judgeEnd(what: string, end: string | null, mend: string): readonly Finding[] {
  const leftMs = end === null ? Number.POSITIVE_INFINITY : Date.parse(end) - Date.now();
  if (leftMs <= 0) return [fail(`${what} until ${end}, which is past`, mend)];
  return leftMs < soonMs ? [warn(`${what} until ${end}, for ${Math.ceil(leftMs / 86_400_000)} more days`, mend)] : [];
}

/** Who can sign where the gateway runs can have it run anything. */
async function findPrivateKeys(
  { source }: GatewayConfig,
  signers: readonly TrustedSigner[],
): Promise<readonly Finding[]> {
  if (source === null) return [];
  const trusted = new Set(signers.map(({ key }) => key?.keyId));
  const folder = dirname(source);
  const names = (await readdir(folder)).filter((name) => name.endsWith(".pem")).slice(0, maxFiles);
  const found: Finding[] = [];
  for (const name of names) {
    if (!trusted.has(await keyIdOf(join(folder, name)))) continue;
    const text = `\`${join(folder, name)}\` can sign whatever the gateway is to trust, and lies beside it`;
    found.push(warn(text, "move it to the machine where packs are signed"));
  }
  return found;
}

async function keyIdOf(path: string): Promise<string | undefined> {
  try {
    const found = await stat(path);
    if (!found.isFile() || found.size > maxPem) return undefined;
    return readSigner(await readFile(path, "utf8")).public.id;
  } catch {
    return undefined;
  }
}

const elapsedMs = (): number => performance.now();
const ignore = (): void => undefined;

/** Loads the packs and plugins as the gateway does, their own tests included. What it saw of them before is not asked. */
export const examineExtensions: Examine = async ({ config }) => {
  const { packs, plugins } = config.policy;
  if (packs.length + plugins.length === 0) {
    return [
      warn(`there is none: every action gets \`${config.policy.defaultDecision}\``, "name a pack in `policy.packs`"),
    ];
  }
  const found: Finding[] = [];
  try {
    await load(config, (path, text) => {
      const mend = `\`gateway pack sign ${path}\` with a key that \`extensions.trust_policy\` names, or leave it out`;
      found.push(warn(`\`${path}\` is loaded although nobody trusted vouches for it: ${text}`, mend));
    });
    found.unshift(
      ok(`${count(packs.length, "pack")} and ${count(plugins.length, "plugin")} load, and pass their tests`),
    );
  } catch (cause) {
    found.unshift(fail(GatewayError.from(cause).message, "`gateway pack lint` and `gateway pack inspect` say more"));
  }
  return found;
};

async function load(config: GatewayConfig, onUntrusted: (path: string, text: string) => void): Promise<void> {
  const { packs, plugins, pluginWorkers, deadlineMs } = config.policy;
  const pool = new PluginPool({ threads: pluginWorkers, deadlineMs, observer: { threads: ignore, waiting: ignore } });
  try {
    await loadExtensions({
      packs,
      plugins,
      strict: config.extensions.strict,
      trustPolicy: config.extensions.trustPolicy,
      clock: Date.now,
      elapsedMs,
      pool,
      sliceFuel: measureFuelRate(elapsedMs),
      observer: { spent: ignore, breached: ignore, circuitOpened: ignore },
      lookUp: async () => undefined,
      onUntrusted: (path, refused) => onUntrusted(path, describeRefusal(refused)),
      onRefused: async () => undefined,
    });
  } finally {
    await pool.close();
  }
}
