import { mkdtemp, readdir, rm } from "node:fs/promises";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Agent } from "../support/agent.ts";
import { DiskFault } from "../support/disk-fault.ts";
import { EvidenceReader } from "../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../support/gateway.ts";
import { siteConfig, siteFiles, siteKey } from "../support/site.ts";

const { EROFS, EACCES } = constants.errno;

describe("a gateway that may not write its state", () => {
  let folder: string;
  let disk: DiskFault;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "gateway-state-"));
    disk = await DiskFault.compile(folder);
  });

  afterEach(() => rm(folder, { recursive: true }));

  for (const [why, errno, said] of [
    ["a read-only disk", EROFS, "is on a read-only disk; mount it writable, or choose another folder"],
    ["a folder of another user", EACCES, "; change its owner, or choose another folder"],
  ] as const) {
    it(`refuses to start on ${why}, and leaves nothing behind [S69]`, async () => {
      await disk.begin("open", errno, "/data");
      expect(await refusal())
        .to.match(/^gateway: state cannot be used: /)
        .and.include(said);
      expect(await readdir(folder)).to.not.include("data");
    });

    it(`refuses to start on ${why} that holds its state, which stays as it was [S69]`, async () => {
      const first = await start();
      await callOnce(first);
      expect(await first.stop()).to.equal(0);
      await disk.begin("open", errno, "/data");
      expect(await refusal())
        .to.match(/^gateway: state cannot be used: /)
        .and.include(said);
      await disk.end();
      const second = await start();
      const reader = new EvidenceReader(second.adminUrl, siteKey);
      expect(await reader.verify()).to.include({ ok: true });
      expect((await reader.recordsOf()).map(({ effect }) => effect)).to.deep.equal(["dispatched", "success"]);
      await second.stop();
    });
  }

  it("refuses to start where only the high-water marks cannot be written [S69]", async () => {
    await disk.begin("open", EROFS, "/high-water");
    expect(await refusal()).to.match(/^gateway: state cannot be used: high-water marks cannot be opened/);
  });

  function start(): Promise<RunningGateway> {
    const config = siteConfig({ localLog: join(folder, "local.jsonl") });
    return startGateway({ folder, config, files: siteFiles(), env: disk.env });
  }

  async function callOnce(gateway: RunningGateway): Promise<void> {
    const agent = new Agent(gateway.url, siteKey);
    expect((await agent.call("list_notes")).status).to.equal(200);
    await agent.hangUp();
  }

  /** What a gateway that cannot start says. */
  async function refusal(): Promise<string> {
    const error = await start().then(
      async (gateway) => {
        await gateway.stop();
        return new Error("it started");
      },
      (cause: Error) => cause,
    );
    expect(error.message).to.match(/^expected a ready line, got exit code 1;/);
    return error.message.slice(error.message.indexOf("gateway: "));
  }
});
