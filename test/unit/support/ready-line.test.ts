import { type ChildProcess, spawn } from "node:child_process";
import { expect } from "chai";
import { awaitReady } from "../../support/ready-line.ts";

function run(program: string): ChildProcess {
  return spawn(process.execPath, ["-e", program], { stdio: ["ignore", "pipe", "pipe"], detached: true });
}

function isRunning(pid: number | undefined): boolean {
  try {
    return pid !== undefined && process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function failureOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "no failure",
    (error: Error) => error.message,
  );
}

const ready = `console.log("not JSON"); console.log('{"event":"other"}'); console.log('{"event":"ready","port":4711}');`;

describe("awaitReady(child, expected, deadlineMs)", () => {
  it("finds the line among others, even when it comes in pieces", async () => {
    const child = run(`process.stdout.write('{"event":"rea'); setTimeout(() => console.log('dy","port":7}'), 50);
      setInterval(() => {}, 1000);`);
    const found = await awaitReady(child, { event: "ready" }, 60_000);
    expect(found.port("port")).to.equal(7);
    expect(await found.stop("SIGKILL", 5_000)).to.equal(128);
  });

  it("says which port is missing", async () => {
    const found = await awaitReady(run(`${ready} setInterval(() => {}, 1000);`), { event: "ready" }, 5_000);
    expect(() => found.port("admin_port")).to.throw("expected a port in `admin_port` of the ready line");
    await found.stop("SIGKILL", 5_000);
  });

  it("gives the end of stderr when the process exits first", async () => {
    const child = run(`console.error("port 1 is taken"); process.exit(3);`);
    const message = await failureOf(awaitReady(child, { event: "ready" }, 60_000));
    expect(message).to.equal("expected a ready line, got exit code 3; stderr ends:\nport 1 is taken\n");
  });

  it("kills a process that stays silent, and its children", async () => {
    // the grandchild holds the pipe open: this settles only once it is gone
    const child = run(`require("node:child_process").spawn("sleep", ["60"], { stdio: "inherit" });
      console.error("thinking"); setInterval(() => {}, 1000);`);
    const message = await failureOf(awaitReady(child, { event: "ready" }, 3_000));
    expect(message).to.equal("expected a ready line within 3000 ms, got none; stderr ends:\nthinking\n");
    expect(isRunning(child.pid)).to.equal(false);
  });

  it("throws what kept the process from starting", async () => {
    const child = spawn("/no/such/program", [], { stdio: ["ignore", "pipe", "pipe"], detached: true });
    expect(await failureOf(awaitReady(child, { event: "ready" }, 60_000))).to.contain("spawn /no/such/program ENOENT");
  });
});

describe("stop(signal, deadlineMs)", () => {
  it("gives the exit code of a process that ends by itself", async () => {
    const child = run(`process.on("SIGTERM", () => process.exit(5)); ${ready} setInterval(() => {}, 1000);`);
    const found = await awaitReady(child, { event: "ready" }, 60_000);
    expect(await found.stop("SIGTERM", 5_000)).to.equal(5);
  });

  it("kills and throws when the process will not end", async () => {
    const child = run(`process.on("SIGTERM", () => console.error("no")); ${ready} setInterval(() => {}, 1000);`);
    const found = await awaitReady(child, { event: "ready" }, 60_000);
    expect(await failureOf(found.stop("SIGTERM", 200))).to.match(/^expected an exit within 200 ms of SIGTERM/);
    expect(isRunning(child.pid)).to.equal(false);
  });

  it("ends what the process left running, and says nothing of it", async () => {
    const child = run(`require("node:child_process").spawn("sleep", ["60"], { stdio: "inherit" });
      process.on("SIGTERM", () => process.exit(0)); ${ready} setInterval(() => {}, 1000);`);
    const found = await awaitReady(child, { event: "ready" }, 60_000);
    expect(await found.stop("SIGTERM", 2_000)).to.equal(0);
    expect(found.stdout()).to.contain('{"event":"ready","port":4711}\n');
  });
});
