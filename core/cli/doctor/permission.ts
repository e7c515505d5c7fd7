import { readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import { quotePosix } from "../print.ts";
import { type DoctorCheck, type DoctorFinding, fail, ok } from "./finding.ts";

const forOthers = 0o077;
const writableByAll = 0o002;
/** Entries that are read of one folder. */
const maxEntries = 1_000;

/** Checks that other users can neither read secrets nor change the configuration and policies. */
export const checkPermissions: DoctorCheck = async ({ config }) => {
  const [secret, trusted] = [await secretPaths(config), trustedPaths(config)];
  const found = [...(await Promise.all(secret.map(checkSecret))), ...(await Promise.all(trusted.map(checkTrusted)))];
  const faults = found.filter((finding) => finding !== undefined);
  return faults.length === 0
    ? [ok("only their owner reads secrets and changes the configuration and policies")]
    : faults;
};

/** The data folder, its keys, and keys and environment files next to the configuration. */
async function secretPaths({ dataDir, source }: GatewayConfig): Promise<readonly string[]> {
  const keys = join(dataDir, "keys");
  const folder = source === null ? dataDir : dirname(source);
  const keyFiles = (await entriesOf(folder)).filter((name) => /\.(?:key|pem|env)$/.test(name));
  return [
    dataDir,
    ...["state", "high-water", "keys"].map((name) => join(dataDir, name)),
    ...(await entriesOf(keys, true)).map((name) => join(keys, name)),
    ...keyFiles.map((name) => join(folder, name)),
  ];
}

/** The configuration, the trust policy and the policies. */
function trustedPaths({ source, extensions, policy }: GatewayConfig): readonly string[] {
  const extensionPaths = [...policy.packs, ...policy.plugins, ...policy.engines].map(({ path }) => path);
  return [...(source === null ? [] : [source, dirname(source)]), ...extensions.trustFiles, ...extensionPaths];
}

async function checkSecret(path: string): Promise<DoctorFinding | undefined> {
  const mode = await modeOf(path);
  if (mode === undefined || (mode.bits & forOthers) === 0) return undefined;
  const fix = `\`chmod ${mode.isFolder ? "700" : "600"} ${quotePosix(path)}\``;
  return fail(`other users may open \`${path}\`, mode ${octal(mode.bits)}`, fix);
}

async function checkTrusted(path: string): Promise<DoctorFinding | undefined> {
  const mode = await modeOf(path);
  // In a sticky folder such as /tmp everyone may add entries, and only their owner may change them.
  if (mode === undefined || (mode.bits & writableByAll) === 0 || (mode.bits & 0o1000) !== 0) return undefined;
  return fail(`every user may change \`${path}\`, mode ${octal(mode.bits)}`, `\`chmod o-w ${quotePosix(path)}\``);
}

async function modeOf(path: string): Promise<{ readonly bits: number; readonly isFolder: boolean } | undefined> {
  const found = await stat(path).catch(() => undefined);
  return found === undefined ? undefined : { bits: found.mode & 0o7777, isFolder: found.isDirectory() };
}

async function entriesOf(folder: string, recursive: boolean = false): Promise<readonly string[]> {
  const names = await readdir(folder, { recursive }).catch(() => []);
  return names.slice(0, maxEntries);
}

function octal(bits: number): string {
  return bits.toString(8).padStart(4, "0");
}
