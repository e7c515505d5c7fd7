import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { repositoryRoot } from "../check/source-tree.ts";
import { Agent } from "../support/agent.ts";
import { folderOf } from "../support/first-party.ts";
import { startGateway } from "../support/gateway.ts";
import { type Ran, runProgram } from "../support/program.ts";
import { readCalls, siteConfig, siteFiles, siteKey } from "../support/site.ts";
import { openDoctorWorld } from "../unit/cli/doctor/world.ts";
import { writtenPlaces } from "./written-place.ts";

const unitPath = join(repositoryRoot, "core/cli/deploy/gateway.service");
const unit = readFileSync(unitPath, "utf8");
/** In tenths, as `systemd-analyze security` counts: 10 is a service that may do anything, 1.5 one of the tightest. */
const maxExposure = 15;
/** Debian's: the binding to libseccomp is its package. */
const confined = ["/usr/bin/python3", join(repositoryRoot, "test/fixture/confined.py"), unitPath];

describe("the systemd unit", () => {
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "service-"));
  });

  after(() => rm(folder, { recursive: true, force: true }));

  /** What `systemd-analyze` says of the unit with the paths of this machine, or of a changed one. */
  async function analyze(args: readonly string[], text: string = unit): Promise<Ran> {
    const file = join(folder, "gateway.service");
    const here = text.replace("/usr/bin/node", process.execPath).replace("/opt/gateway", repositoryRoot);
    await writeFile(file, here);
    return runProgram("systemd-analyze", [...args, file]);
  }

  it("is read by systemd, which finds nothing to say", async () => {
    const { code, stdout, stderr } = await analyze(["verify"]);
    expect({ code, stdout, stderr }).to.deep.equal({ code: 0, stdout: "", stderr: "" });
    expect((await analyze(["verify"], unit.replace("NoNewPrivileges=", "NoNewPrivilege="))).stderr).to.include(
      "Unknown",
    );
  });

  it("may write what a new installation writes, each in a folder of its own that can be another disk [S46]", async () => {
    const world = await openDoctorWorld();
    const written = await writtenPlaces(world.folder, unit).finally(() => world.remove());
    const [, names = ""] = /^StateDirectory=(.*)$/m.exec(unit) ?? [];
    const folders = names.split(" ").map((name) => `/var/lib/${name}`);
    const used = written.map((path) => folders.find((folder) => `${path}/`.startsWith(`${folder}/`)));
    expect(used).to.deep.equal([folders[0], folders[1], folders[1], folders[2]]);
  });

  it("leaves the service little to do harm with", async () => {
    const exposure = ["security", "--offline=true", `--threshold=${maxExposure}`];
    expect((await analyze(exposure)).code).to.equal(0);
    for (const line of ["SystemCallFilter=@system-service\n", "CapabilityBoundingSet=\n"]) {
      expect(unit, line).to.include(line);
      const loosened = unit.replace(line, "");
      expect((await analyze(exposure, loosened)).code, `without ${line}`).to.not.equal(0);
    }
  });

  it("allows every system call that the gateway needs, with servers over stdio, plugins and state on disk", async () => {
    const localLog = join(folder, "calls");
    const plugins = `plugins: [{ path: "${folderOf("secret-egress")}" }]`;
    const packs = "packs: [{ path: packs/open }]";
    const gateway = await startGateway({
      config: siteConfig({ localLog }).replace(packs, `${packs}, ${plugins}`),
      files: siteFiles(),
      launcher: confined,
    });
    const agent = new Agent(gateway.url, siteKey);
    const { result } = await agent.call("write_note", { title: "plan", text: "Ship it." });
    await agent.hangUp();
    expect(result?.isError).to.not.equal(true);
    expect((await readCalls(localLog)).map(({ tool }) => tool)).to.deep.equal(["write_note"]);
    expect(await gateway.stop()).to.equal(0);
  });

  it("allows others to nobody", async () => {
    const attempts = {
      chown: "fs.chownSync('.', process.getuid(), process.getgid())",
      netlink: "os.networkInterfaces()",
    };
    const tries = Object.entries(attempts).map(([name, code]) => `try { ${code}; console.log('${name}') } catch {}`);
    const script = `const [fs, os] = ['fs', 'os'].map(process.getBuiltinModule); ${tries.join(" ")}`;
    const free = await runProgram(process.execPath, ["-e", script]);
    expect(free.stdout).to.equal("chown\nnetlink\n");
    const [command = "", ...args] = [...confined, process.execPath, "-e", script];
    expect(await runProgram(command, args)).to.deep.equal({ code: 0, stdout: "", stderr: "" });
  });
});
