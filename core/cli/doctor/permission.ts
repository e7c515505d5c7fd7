import { readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import { quotePosix } from "../completion.ts";
import { type Examine, type Finding, fail, ok } from "./finding.ts";

const forOthers = 0o077;
const writableByAll = 0o002;
/** Entries of one folder that are looked at. */
const maxEntries = 1_000;

/** What others on this machine may read of secrets, and change of what decides. */
export const examinePermissions: Examine = async ({ config }) => {
  const [secret, deciding] = [await secretPaths(config), decidingPaths(config)];
  const found = [
    ...(await Promise.all(secret.map(examineSecret))),
    ...(await Promise.all(deciding.map(examineDeciding))),
  ];
  const faults = found.filter((finding) => finding !== undefined);
  return faults.length === 0 ? [ok("secrets are their owner's, and nobody else may change what decides")] : faults;
};

/** The data folder, its keys, and keys beside the configuration. */
async function secretPaths({ dataDir, source }: GatewayConfig): Promise<readonly string[]> {
  const keys = join(dataDir, "keys");
  const folder = source === null ? dataDir : dirname(source);
  const beside = (await entriesOf(folder)).filter((name) => /\.(?:key|pem)$/.test(name));
  return [
    dataDir,
    ...["state", "high-water", "keys"].map((name) => join(dataDir, name)),
    ...(await entriesOf(keys, true)).map((name) => join(keys, name)),
    ...beside.map((name) => join(folder, name)),
  ];
}

function decidingPaths({ source, extensions, policy }: GatewayConfig): readonly string[] {
  const extensionPaths = [...policy.packs, ...policy.plugins].map(({ path }) => path);
  return [...(source === null ? [] : [source, dirname(source)]), ...extensions.trustFiles, ...extensionPaths];
}

async function examineSecret(path: string): Promise<Finding | undefined> {
  const mode = await modeOf(path);
  if (mode === undefined || (mode.bits & forOthers) === 0) return undefined;
  const mend = `\`chmod ${mode.isFolder ? "700" : "600"} ${quotePosix(path)}\``;
  return fail(`others may open \`${path}\`, mode ${octal(mode.bits)}`, mend);
}

async function examineDeciding(path: string): Promise<Finding | undefined> {
  const mode = await modeOf(path);
  // In a folder such as /tmp everybody may add, and only its owner change, what is there.
  if (mode === undefined || (mode.bits & writableByAll) === 0 || (mode.bits & 0o1000) !== 0) return undefined;
  return fail(`everybody may change \`${path}\`, mode ${octal(mode.bits)}`, `\`chmod o-w ${quotePosix(path)}\``);
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
