import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { repositoryRoot } from "../check/source-tree.ts";
import { TranscriptFolder } from "../cli/transcript-folder.ts";
import { nodeFlags } from "../support/node-flags.ts";
import { awaitReady, type ReadyProcess } from "../support/ready-line.ts";
import { type DoctorWorld, openDoctorWorld } from "../unit/cli/doctor/world.ts";
import { program } from "../unit/cli/run.ts";

const page = readFileSync(join(repositoryRoot, "core/store/UPGRADE.md"), "utf8");
/** Its commands in their order with what they print, and where its gateway is stopped and started. */
const blocks = [
  ...page.matchAll(/^```sh (step|stopping|starting)\n(.*?)^```\n(?:\n```text printed\n(.*?)^```)?/gms),
].map(([, use = "", command = "", shown = ""]) => ({ use, command: command.trimEnd(), shown }));

describe("the page on upgrading, top to bottom", function () {
  this.timeout(180_000);
  let world: DoctorWorld;
  let folder: TranscriptFolder;
  let served: ReadyProcess | undefined;

  before(async () => {
    world = await openDoctorWorld();
    folder = await TranscriptFolder.make("set -o pipefail\n");
    await cp(world.folder, join(folder.path, "srv/gateway"), { recursive: true });
    await start();
  });

  after(async () => {
    await stop();
    await folder?.remove();
    await world?.remove();
  });

  const place = (text: string): string => text.replaceAll("/srv", join(folder.path, "srv"));

  async function start(): Promise<void> {
    const args = [...nodeFlags, program, "serve", "--config", place("/srv/gateway/gateway.yaml")];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"], detached: true });
    served = await awaitReady(child, { event: "ready" }, 60_000);
  }

  async function stop(): Promise<void> {
    await served?.stop("SIGTERM", 30_000);
    served = undefined;
  }

  function environment(): Record<string, string> {
    if (served === undefined) return {};
    return {
      GATEWAY_ADMIN_URL: `http://127.0.0.1:${served.port("admin_port")}`,
      GATEWAY_API_KEY: readFileSync(place("/srv/gateway/admin.key"), "utf8").trim(),
    };
  }

  for (const { use, command, shown } of blocks) {
    it(`${use}: ${command.split("\n")[0]}`, async () => {
      if (use === "stopping") await stop();
      else if (use === "starting") await start();
      else
        await folder.expectAsShown({ command: place(command), stdout: shown, stderr: "…\n", code: 0 }, environment());
    });
  }
});
