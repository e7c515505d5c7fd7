import { readdir, readFile, utimes, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { expect } from "chai";

import {
  checkClock,
  checkDisk,
  checkNodeVersion,
  checkSync,
  judgeClock,
  judgeSpace,
  judgeSync,
  oldestNode,
} from "../../../../core/cli/doctor/machine.ts";
import { checkPorts } from "../../../../core/cli/doctor/port.ts";
import { repositoryRoot } from "../../../check/source-tree.ts";
import { runProgram } from "../../../support/program.ts";
import { program } from "../run.ts";
import { type DoctorWorld, openDoctorWorld, statuses, told } from "./world.ts";

describe("doctor: the machine", () => {
  let world: DoctorWorld;

  before(async () => {
    world = await openDoctorWorld();
  });

  after(() => world.remove());

  describe("node", () => {
    it("finds one that is too old, by the version that package.json asks for", async () => {
      const { engines } = JSON.parse(await readFile(join(repositoryRoot, "package.json"), "utf8"));
      expect(engines.node).to.equal(`>=${oldestNode}`);
      expect(statuses(checkNodeVersion("20.18.3", {}))).to.deep.equal(["fail"]);
      expect(statuses(checkNodeVersion("18.20.8", {}))).to.deep.equal(["fail"]);
      expect(statuses(checkNodeVersion("20.19.0", {}))).to.deep.equal(["ok"]);
      expect(statuses(checkNodeVersion("22.1.0", {}))).to.deep.equal(["ok"]);
    });

    it("finds options that open or weaken the process, and tells no value of one", () => {
      const opened = checkNodeVersion("22.1.0", { NODE_OPTIONS: "--max-old-space-size=99 --inspect=0.0.0.0:4711" });
      expect(told(opened, "fail")).to.include("`--inspect`").and.not.include("4711");
      const changed = checkNodeVersion("22.1.0", { NODE_OPTIONS: "--require ./secret-place.js" });
      expect(told(changed, "warn")).to.include("`--require`").and.not.include("secret");
      expect(told(checkNodeVersion("22.1.0", { NODE_TLS_REJECT_UNAUTHORIZED: "0" }), "fail")).to.include(
        "no certificate",
      );
      expect(
        statuses(checkNodeVersion("22.1.0", { NODE_OPTIONS: "", NODE_TLS_REJECT_UNAUTHORIZED: "1" })),
      ).to.deep.equal(["ok"]);
    });
  });

  describe("ports", () => {
    it("finds one that is taken, and by whom, until it is free", async () => {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const { port } = server.address() as AddressInfo;
      const { config } = await world.target();
      const target = await world.target({ listen: { ...config.listen, adminPort: port } });
      const found = told(await checkPorts(target), "fail");
      expect(found)
        .to.include(`${port} is taken by`)
        .and.include(`pid ${process.pid}`)
        .and.include("`listen.admin_port`");
      const own = { ...target, holder: { pid: process.pid, name: "node" } };
      expect(told(await checkPorts(own), "ok")).to.include("the gateway runs");
      await new Promise((resolve) => server.close(resolve));
      expect(statuses(await checkPorts(target))).to.deep.equal(["ok"]);
    });

    it("finds a host that is not this machine's", async () => {
      const { config } = await world.target();
      const listen = { ...config.listen, host: "203.0.113.1", gatewayPort: 8080 };
      expect(told(await checkPorts(await world.target({ listen })), "fail")).to.include("`listen.host`");
    });
  });

  describe("open files", () => {
    it("finds a limit that is too low for the connections permitted, and no fault where it is not", async () => {
      const modest = join(world.folder, "modest.yaml");
      const anyPorts = "listen: {gateway_port: 0, admin_port: 0, metrics_port: 0}\n";
      await writeFile(modest, `${anyPorts}limits: {max_connections: 88}\n`);
      const plain = join(world.folder, "plain.yaml");
      await writeFile(plain, anyPorts);
      const limited = async (files: number, config: string): Promise<string> => {
        const line = `ulimit -n ${files} && "$0" "$1" doctor --config "$2"`;
        const { stdout } = await runProgram("bash", ["-c", line, process.execPath, program, config]);
        return /^(\w+) +open files +(.*)$/m.exec(stdout)?.slice(1).join(" ") ?? stdout;
      };
      expect(await limited(590, modest)).to.match(/^fail 590 are permitted, at most 600 are needed.*LimitNOFILE=600/);
      expect(await limited(1_100, plain)).to.match(/^warn 1100 are permitted, at most 10512 are needed/);
      expect(await limited(600, modest)).to.match(/^ok 600 are permitted/);
    });
  });

  describe("clock", () => {
    const sound = { nowMs: Date.parse("2027-03-01T00:00:00Z"), jumpMs: 3, writtenMs: null, skewMs: -4 };

    it("finds evidence that was written later than now, until the clock is right again", async () => {
      const mark = join(world.dataDir, "high-water");
      await writeFile(mark, "", { mode: 0o600 });
      const [now, later] = [Date.now() / 1_000, Date.now() / 1_000 + 3_600];
      await utimes(mark, now, later);
      expect(told(await checkClock(await world.target()), "fail")).to.include("the clock was set back");
      await utimes(mark, now, now);
      expect(statuses(await checkClock(await world.target()))).to.deep.equal(["ok"]);
    });

    it("finds one that was never set, that jumps, and that the file system contradicts", () => {
      expect(statuses(judgeClock(sound))).to.deep.equal(["ok"]);
      expect(told(judgeClock({ ...sound, nowMs: 0 }), "fail")).to.include("never set");
      expect(told(judgeClock({ ...sound, jumpMs: -3_600_000 }), "warn")).to.include("jumped by -3600.0 s");
      expect(told(judgeClock({ ...sound, skewMs: 90_000 }), "warn")).to.include("90.0 s ahead");
    });
  });

  describe("disk", () => {
    it("finds one that is nearly full", () => {
      const mebibyte = 1_048_576;
      expect([100, 1_000, 10_000].map((size) => judgeSpace(size * mebibyte).status)).to.deep.equal([
        "fail",
        "warn",
        "ok",
      ]);
    });

    it("names a file system that forgets", async () => {
      const found = await checkDisk(await world.target({ dataDir: "/dev/shm/not/there/yet" }));
      expect(told(found, "warn")).to.include("tmpfs");
      const memory = await world.target({ state: { enabled: false, mark: null } });
      expect(told(await checkDisk(memory), "warn")).to.include("state.enabled");
    });
  });

  describe("disk sync", () => {
    it("measures real writes, and leaves nothing behind", async () => {
      const before = await readdir(world.dataDir);
      const [found] = await checkSync(await world.target());
      expect(found?.text).to.match(/^a synced write takes \d+\.\d\d ms on average, \d+\.\d\d ms at p99/);
      expect(await readdir(world.dataDir)).to.deep.equal(before);
    });

    it("finds a disk that is slow, and one that is quicker than any", () => {
      const times = (ms: number): number[] => Array.from({ length: 100 }, () => ms);
      expect(judgeSync(times(2)).status).to.equal("ok");
      expect(told([judgeSync([...times(2), 25, 26])], "warn")).to.include("SSD");
      expect(told([judgeSync(times(0.004))], "warn")).to.include("no durable disk is so fast");
    });

    it("finds a folder that cannot be written", async () => {
      const found = told(await checkSync(await world.target({ dataDir: "/proc" })), "fail");
      expect(found).to.include("`/proc` cannot be written");
    });
  });
});
