import { expect } from "chai";
import { Agent } from "../../support/agent.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { siteConfig, siteFiles, siteKey } from "../../support/site.ts";
import { type Answers, type LocalServer, Network, openWitnessPort, serveClosing, type WitnessPort } from "./network.ts";

const name = "tools.example";
const publicAddress = "93.184.216.34";

describe("a name that is resolved again", () => {
  let network: Network;
  let server: LocalServer;
  let witness: WitnessPort;
  let gateway: RunningGateway | undefined;
  let agent: Agent;

  beforeEach(async () => {
    [network, server, witness] = await Promise.all([Network.open(), serveClosing(), openWitnessPort()]);
  });

  afterEach(async () => {
    await agent?.hangUp();
    await gateway?.stop();
    gateway = undefined;
    await Promise.all([server.close(), witness.close(), network.remove()]);
  });

  /** The public address leads to the server; every other address has the listener that is not to be reached. */
  function resolve(answers: Answers): Promise<void> {
    return network.write({ [name]: answers }, { [publicAddress]: server.port });
  }

  async function start(more: string = ""): Promise<RunningGateway> {
    const remoteUrl = `http://${name}:${witness.port}/mcp`;
    gateway = await startGateway({ config: siteConfig({ remoteUrl, more }), files: siteFiles(), env: network.env });
    agent = new Agent(gateway.url, siteKey, "egress");
    return gateway;
  }

  async function call(): Promise<string> {
    const { result, error } = await agent.call("echo");
    return result?.content?.[0]?.text ?? `${error?.data?.code}: ${error?.message}`;
  }

  const refused = "UPSTREAM_UNAVAILABLE: upstream unavailable: the connection failed (EGRESS_REFUSED)";

  it("to this machine is not connected to: the call fails, evidence says so, operators see the address [S38]", async () => {
    await resolve([[publicAddress]]);
    const { adminUrl, stderr } = await start();
    expect(await call()).to.equal("served");
    await resolve([["127.0.0.1"]]);
    expect(await call()).to.equal(refused);
    expect(witness.connections).to.equal(0);
    const records = await new EvidenceReader(adminUrl, siteKey).recordsOf((label) => label === "egress");
    expect(records.map(({ kind, effect, reason }) => [kind, effect, reason])).to.deep.equal([
      ["decision", "dispatched", undefined],
      ["outcome", "success", undefined],
      ["decision", "dispatched", undefined],
      ["outcome", "unknown", "UPSTREAM_UNAVAILABLE"],
    ]);
    expect(stderr())
      .to.include("egress_refused")
      .and.include(`refused to connect to \`${name}\`: its address 127.0.0.1 is loopback`);
  });

  it("to a metadata service, in any form, is not connected to [S38]", async () => {
    await resolve([[publicAddress]]);
    await start();
    expect(await call()).to.equal("served");
    for (const address of ["169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1"]) {
      await network.write({ [name]: [[address]] }, { [address]: witness.port, [publicAddress]: server.port });
      expect(await call()).to.equal(refused);
    }
    expect(witness.connections).to.equal(0);
    expect((await network.connections()).filter((line) => !line.startsWith(publicAddress))).to.deep.equal([]);
  });

  it("to another place at every second look-up is connected to at the first place alone [S38]", async () => {
    await resolve([[publicAddress]]);
    await start();
    expect(await call()).to.equal("served");
    await resolve([[publicAddress], ["127.0.0.1"]]);
    const outcomes = new Set<string>();
    for (let round = 0; round < 20; round++) outcomes.add(await call());
    expect([...outcomes].sort()).to.deep.equal([refused, "served"].sort());
    expect(witness.connections).to.equal(0);
  });

  it("to several places is connected to at the permitted ones", async () => {
    await resolve([["127.0.0.1", publicAddress, "10.0.0.1"]]);
    await start();
    for (let round = 0; round < 5; round++) expect(await call()).to.equal("served");
    expect(witness.connections).to.equal(0);
    expect([...new Set(await network.connections())]).to.deep.equal([`${publicAddress} ${witness.port}`]);
  });

  it("is connected to on this machine where `egress.private_hosts` lists it", async () => {
    await resolve([[publicAddress]]);
    await start(`egress: { private_hosts: ["${name}"] }`);
    expect(await call()).to.equal("served");
    await resolve([["127.0.0.1"]]);
    expect(await call()).not.to.equal("served");
    expect(witness.connections).to.be.above(0);
  });
});
