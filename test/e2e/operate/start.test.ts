import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Agent } from "../../support/agent.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { siteConfig, siteFiles, siteKey } from "../../support/site.ts";

describe("gateway serve --config", () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "gateway-start-"));
  });

  afterEach(() => rm(folder, { recursive: true }));

  it("ends with 1 and names host, port and next step when a port is taken", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    const config = siteConfig({}).replace("admin_port: 0", `admin_port: ${port}`);
    const told = await refusal(config).finally(() => server.close());
    expect(told).to.equal(
      `gateway: port cannot be opened: 127.0.0.1:${port}: another process listens there; stop it, ` +
        "or choose another port: `listen` in the configuration, `--port` without one\n",
    );
    const gateway = await start(config);
    expect(gateway.adminUrl).to.equal(`http://127.0.0.1:${port}`);
    expect(await gateway.stop()).to.equal(0);
  });

  it("ends with 1 while another process holds its state, which goes on serving [S69]", async () => {
    const localLog = join(folder, "local.jsonl");
    const first = await start(siteConfig({ localLog }));
    try {
      expect(await refusal(siteConfig({ localLog }))).to.match(
        /^gateway: state cannot be used: another process holds `[^`]*\/data\/state`; stop it, or choose another folder\n$/,
      );
      const agent = new Agent(first.url, siteKey);
      expect((await agent.call("list_notes")).status).to.equal(200);
      await agent.hangUp();
      expect(await new EvidenceReader(first.adminUrl, siteKey).verify()).to.include({ ok: true });
    } finally {
      expect(await first.stop()).to.equal(0);
    }
    expect(await (await start(siteConfig({ localLog }))).stop()).to.equal(0);
  });

  it("ends with 1 where a file stands in the place of its state", async () => {
    await writeFile(join(folder, "data"), "");
    expect(await refusal(siteConfig({}))).to.match(
      /^gateway: state cannot be used: expected `[^`]*\/data\/state` to be a folder, got a file\n$/,
    );
  });

  it("keeps its evidence in the data folder, from one start to the next [R1.1-31, R2.8-4]", async () => {
    const localLog = join(folder, "local.jsonl");
    for (const expected of [2, 4]) {
      const gateway = await start(siteConfig({ localLog }));
      const agent = new Agent(gateway.url, siteKey);
      await agent.call("list_notes");
      await agent.hangUp();
      const records = await new EvidenceReader(gateway.adminUrl, siteKey).recordsOf();
      expect(records).to.have.length(expected);
      await gateway.stop();
    }
    expect(await readdir(join(folder, "data"))).to.include.members(["high-water", "state"]);
  });

  it("leaves no file behind where `state.enabled` is false [R2.8-4]", async () => {
    const localLog = join(folder, "local.jsonl");
    const gateway = await start(siteConfig({ localLog, more: "state: { enabled: false }" }));
    const agent = new Agent(gateway.url, siteKey);
    expect((await agent.call("list_notes")).status).to.equal(200);
    await agent.hangUp();
    const reader = new EvidenceReader(gateway.adminUrl, siteKey);
    expect(await reader.recordsOf()).to.have.length(2);
    expect(await reader.verify()).to.include({ ok: true });
    await gateway.stop();
    expect(await readdir(folder)).to.have.members(["gateway.yaml", "local.jsonl", "packs"]);
  });

  it("ends with 1 where it would listen beyond this machine without keys [S11]", async () => {
    const config = siteConfig({})
      .replace("listen: {", "listen: { host: 0.0.0.0, allowed_hosts: [gateway.example],")
      .replace(/^keys: .*$/m, "keys: []");
    expect(await refusal(config)).to.match(/^gateway: invalid configuration: .*\n?.*`?keys`?/m);
  });

  function start(config: string): Promise<RunningGateway> {
    return startGateway({ folder, config, files: siteFiles() });
  }

  /** What a gateway that cannot start says. */
  async function refusal(config: string): Promise<string> {
    const error = await start(config).then(
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
