import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { repositoryRoot } from "../check/source-tree.ts";
import { isAsShown } from "../support/shown-output.ts";
import { parseTranscript, type Step } from "./transcript.ts";

const program = fileURLToPath(new URL("../../core/cli/main.js", import.meta.url));
const transcripts = join(repositoryRoot, "test", "cli");

/**
 * Each file runs top to bottom in a folder of its own, with `policy-packs` beside it and `$TAKEN` a port in use. What a
 * step writes to `$BASH_ENV` is in force in every later one.
 */
for (const name of readdirSync(transcripts).filter((file) => file.endsWith(".txt"))) {
  describe(`transcript ${name}`, () => {
    let folder: string;
    let holder: Server;

    before(async () => {
      folder = await mkdtemp(join(tmpdir(), "transcript-"));
      await symlink(join(repositoryRoot, "policy-packs"), join(folder, "policy-packs"));
      await mkdir(join(folder, "bin"));
      await writeFile(join(folder, "bin", "gateway"), `#!/bin/sh\nexec "${process.execPath}" "${program}" "$@"\n`);
      await writeFile(join(folder, "bin", "profile"), "");
      await chmod(join(folder, "bin", "gateway"), 0o755);
      holder = await holdPort();
    });

    after(async () => {
      await new Promise((resolve) => holder.close(resolve));
      await rm(folder, { recursive: true });
    });

    for (const step of parseTranscript(readFileSync(join(transcripts, name), "utf8"))) {
      it(`$ ${step.command.split("\n")[0]}`, async () => {
        const { port } = holder.address() as AddressInfo;
        const bin = join(folder, "bin");
        const path = `${bin}${delimiter}${process.env.PATH}`;
        const env = { PATH: path, TAKEN: String(port), BASH_ENV: join(bin, "profile") };
        expectAsShown(step, await run(step.command, folder, env));
      });
    }
  });
}

function expectAsShown(step: Step, actual: Step): void {
  const same =
    step.code === actual.code && isAsShown(step.stdout, actual.stdout) && isAsShown(step.stderr, actual.stderr);
  if (!same) expect(actual).to.deep.equal(step);
}

function run(command: string, cwd: string, env: Readonly<Record<string, string>>): Promise<Step> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      "bash",
      ["--norc", "-c", command],
      { cwd, env, timeout: 30_000 },
      (_error, stdout, stderr) => {
        const readable = (text: string): string => text.replaceAll(cwd, "FOLDER");
        if (child.exitCode === null) reject(new Error(`expected an exit code, got the signal ${child.signalCode}`));
        else resolve({ command, stdout: readable(stdout), stderr: readable(stderr), code: child.exitCode });
      },
    );
  });
}

function holdPort(): Promise<Server> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => resolve(server));
  });
}
