import { readdir, readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { GatewayError } from "../../action/error.ts";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import type { TrustedSigner } from "../../config/trust-policy.ts";
import { readExtensionFolder } from "../../trust/folder.ts";
import { readSigner } from "../../trust/signing.ts";
import type { ExtensionKind } from "../../trust/verified-extension.ts";
import { isRefused } from "../../trust/verified-extension.ts";
import { readSigned } from "../../trust/verifier.ts";
import { loadOnTrial } from "../trial-load.ts";
import { type DoctorCheck, type DoctorFinding, fail, ok, quantity, warn } from "./finding.ts";

const soonMs = 30 * 86_400_000;
const maxFiles = 100;
const maxPem = 65_536;

/** Checks that signatures are required, that signers and signatures do not expire soon, and that signing keys are elsewhere. */
export const checkTrust: DoctorCheck = async ({ config }) => {
  const { strict, trustPolicy } = config.extensions;
  const found: DoctorFinding[] = [];
  if (!strict) {
    const fix = "set `extensions.strict` to true, with a trust policy; `gateway init` shows both";
    found.push(warn("unsigned packs and plugins are loaded: write access to their folders is enough", fix));
  }
  if (trustPolicy !== null) {
    const signers = [...trustPolicy.allOf, ...(trustPolicy.anyOf?.signers ?? [])];
    found.push(...signers.flatMap(checkSigner), ...(await checkSignatures(config)));
    found.push(...(await findPrivateKeys(config, signers)));
  }
  return found.length === 0 ? [ok("everything loaded is signed by a trusted signer, and not about to expire")] : found;
};

function checkSigner({ name, notAfter }: TrustedSigner): readonly DoctorFinding[] {
  const fix = "add a new key to the trust policy, and sign again with it";
  return judgeEnd(`signer \`${name}\` is trusted`, notAfter, fix);
}

/** Checks when signatures expire. */
async function checkSignatures({ policy }: GatewayConfig): Promise<readonly DoctorFinding[]> {
  const places = [
    ...policy.packs.map(({ path }) => ({ path, kind: "pack" as ExtensionKind })),
    ...policy.plugins.map(({ path }) => ({ path, kind: "plugin" as ExtensionKind })),
    ...policy.engines.map(({ path }) => ({ path, kind: "engine" as ExtensionKind })),
  ];
  const found: DoctorFinding[] = [];
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

function judgeEnd(subject: string, end: string | null, fix: string): readonly DoctorFinding[] {
  const leftMs = end === null ? Number.POSITIVE_INFINITY : Date.parse(end) - Date.now();
  if (leftMs <= 0) return [fail(`${subject} until ${end}, which is past`, fix)];
  return leftMs < soonMs ? [warn(`${subject} until ${end}, for ${Math.ceil(leftMs / 86_400_000)} more days`, fix)] : [];
}

/** Finds trusted private keys next to the configuration: a process that reads one can sign any policy. */
async function findPrivateKeys(
  { source }: GatewayConfig,
  signers: readonly TrustedSigner[],
): Promise<readonly DoctorFinding[]> {
  if (source === null) return [];
  const trusted = new Set(signers.map(({ key }) => key?.keyId));
  const folder = dirname(source);
  const names = (await readdir(folder)).filter((name) => name.endsWith(".pem")).slice(0, maxFiles);
  const found: DoctorFinding[] = [];
  for (const name of names) {
    if (!trusted.has(await keyIdOf(join(folder, name)))) continue;
    const text = `\`${join(folder, name)}\` is the private key of a trusted signer, next to the configuration`;
    found.push(warn(text, "move it to the machine that signs packs"));
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

/** Loads the packs, plugins and engines as the gateway does at its first start, tests included. */
export const checkExtensions: DoctorCheck = async ({ config }) => {
  const { packs, plugins, engines } = config.policy;
  if (packs.length + plugins.length + engines.length === 0) {
    return [
      warn(
        `none is configured: every action gets \`${config.policy.defaultDecision}\``,
        "name a pack in `policy.packs`",
      ),
    ];
  }
  const found: DoctorFinding[] = [];
  try {
    await loadOnTrial(config, (path, text) => {
      const fix = `\`gateway pack sign ${path}\` with a key of \`extensions.trust_policy\`, or remove it`;
      found.push(warn(`\`${path}\` is loaded without a trusted signature: ${text}`, fix));
    });
    found.unshift(ok(`${describeCounts(config.policy)} load and pass their tests`));
  } catch (cause) {
    found.unshift(fail(GatewayError.from(cause).message, "see `gateway pack lint` and `gateway pack inspect`"));
  }
  return found;
};

function describeCounts({ packs, plugins, engines }: GatewayConfig["policy"]): string {
  const counts = [quantity(packs.length, "pack"), quantity(plugins.length, "plugin")];
  return engines.length === 0 ? counts.join(" and ") : `${counts.join(", ")} and ${quantity(engines.length, "engine")}`;
}
