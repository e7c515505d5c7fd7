import { rmSync } from "node:fs";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DoctorFinding, DoctorTarget, Status } from "../../../../core/cli/doctor/finding.ts";
import { makeInstallation } from "../../../../core/cli/init.ts";
import type { GatewayConfig } from "../../../../core/config/gateway-config.ts";
import { loadConfig } from "../../../../core/config/load.ts";

/** An installation as `gateway init` makes it, on any free ports, examined from inside; with the baseline pack alone unless told. */
export interface DoctorWorld {
  readonly folder: string;
  readonly dataDir: string;
  readonly configPath: string;
  /** The configuration as it is in the file now, with these keys in place of its own. */
  target(changes?: Partial<GatewayConfig>, env?: NodeJS.ProcessEnv): Promise<DoctorTarget>;
  remove(): Promise<void>;
}

let made: Promise<string> | undefined;

/** Made once in each process: signing and loading the packs takes a second. */
async function madeInstallation(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "doctor-made-"));
  process.once("exit", () => rmSync(folder, { recursive: true }));
  await makeInstallation(folder, { tenant: "acme", firstPort: 0, upstream: null, writesKeys: true });
  return folder;
}

/** `whole`: with every pack and plugin that `gateway init` names, whose own tests take seconds each time they are checked. */
export async function openDoctorWorld({ whole = false } = {}): Promise<DoctorWorld> {
  made ??= madeInstallation();
  const folder = await mkdtemp(join(tmpdir(), "doctor-"));
  await cp(await made, folder, { recursive: true });
  const configPath = join(folder, "gateway.yaml");
  if (!whole) await writeFile(configPath, withBaselineAlone(await readFile(configPath, "utf8")));
  return {
    folder,
    dataDir: join(folder, "data"),
    configPath,
    target: async (changes = {}, env = {}) => {
      const config = { ...(await loadConfig(configPath, {})), ...changes };
      return { config, holder: null, env, admin: "http://127.0.0.1:1" };
    },
    remove: () => rm(folder, { recursive: true }),
  };
}

function withBaselineAlone(config: string): string {
  const further = / {4}- path: policy-packs\/session-watch\n.*?(?= {2}default_decision)/s;
  if (!further.test(config)) throw new Error("expected a configuration with more than the baseline pack");
  return config.replace(further, "");
}

/** The findings of one status, one a line. */
export function told(findings: readonly DoctorFinding[], status: Status): string {
  return findings
    .filter((finding) => finding.status === status)
    .map(({ text, fix }) => `${text}; ${fix}`)
    .join("\n");
}

/** The statuses in their order. */
export function statuses(findings: readonly DoctorFinding[]): readonly Status[] {
  return findings.map(({ status }) => status);
}
