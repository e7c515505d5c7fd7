import { expect } from "chai";
import { freePorts } from "../../support/free-port.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { siteConfig, siteFiles, siteKey } from "../../support/site.ts";
import { until } from "../../support/webhook-receiver.ts";
import { runGateway } from "../../unit/cli/run.ts";
import { type LocalServer, Network, openWitnessPort, serveClosing, type WitnessPort } from "./network.ts";

/** Addresses that a public name never leads to, and the reason for operators. */
const forbidden: Readonly<Record<string, string>> = {
  "127.0.0.1": "is loopback",
  "127.8.9.10": "is loopback",
  "0.0.0.0": "is loopback",
  "::1": "is loopback",
  "::ffff:127.0.0.1": "is loopback",
  "::ffff:7f00:1": "is loopback",
  "10.1.2.3": "is private",
  "192.168.1.1": "is private",
  "100.64.0.1": "is private",
  "fd12:3456::1": "is private",
  "::ffff:10.1.2.3": "is private",
  "64:ff9b::a01:203": "is private",
  "2002:a01:203::1": "is private",
  "169.254.7.7": "is link_local",
  "fe80::1": "is link_local",
  "::ffff:169.254.7.7": "is link_local",
  "198.18.0.1": "is reserved",
  "224.0.0.1": "is reserved",
  "169.254.169.254": "is a metadata service",
  "100.100.100.200": "is a metadata service",
  "fd00:ec2::254": "is a metadata service",
  "::ffff:169.254.169.254": "is a metadata service",
  "64:ff9b::a9fe:a9fe": "is a metadata service",
};

interface UpstreamState {
  readonly name: string;
  readonly state: string;
  readonly reason?: string;
}

describe("the addresses of upstreams", () => {
  let network: Network;
  let server: LocalServer;
  let witness: WitnessPort;
  let gateway: RunningGateway | undefined;

  beforeEach(async () => {
    [network, server, witness] = await Promise.all([Network.open(), serveClosing(), openWitnessPort()]);
  });

  afterEach(async () => {
    await gateway?.stop();
    gateway = undefined;
    await Promise.all([server.close(), witness.close(), network.remove()]);
  });

  /** Starts a gateway with an upstream at each URL, and returns what operators see once none is starting. */
  async function states(
    urls: readonly string[],
    more: string = "",
    listen = anyPorts,
  ): Promise<readonly UpstreamState[]> {
    const entries = urls.map(
      (url, at) =>
        `{ name: u${at}, tool_prefix: u${at}_, transport: http, url: "${url}", protocol: legacy, connection: shared }`,
    );
    const config = siteConfig({ more })
      .replace("upstreams: []", `upstreams: [${entries.join(", ")}]`)
      .replace(anyPorts, listen);
    gateway = await startGateway({ config, files: siteFiles(), env: network.env });
    const { adminUrl } = gateway;
    let found: readonly UpstreamState[] = [];
    await until(async () => {
      const response = await fetch(`${adminUrl}/admin/v1/upstreams`, { headers: { "x-api-key": siteKey } });
      found = ((await response.json()) as { items: readonly UpstreamState[] }).items;
      return found.every(({ state, reason }) => (state !== "starting" && state !== "idle") || reason !== undefined);
    }, "every upstream to be up or down");
    return found;
  }

  const anyPorts = "listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }";

  it("of a public name are public: others are not connected to, though the network leads there [S38]", async () => {
    const addresses = Object.keys(forbidden);
    const names = Object.fromEntries(addresses.map((address, at) => [`n${at}.example`, [[address]]]));
    const routes = Object.fromEntries(addresses.map((address) => [address, witness.port]));
    await network.write(names, routes);
    const found = await states(Object.keys(names).map((name) => `http://${name}:${witness.port}/mcp`));
    expect(found.map(({ state }) => state)).to.deep.equal(addresses.map(() => "down"));
    for (const [at, { reason }] of found.entries()) {
      const address = addresses[at] as string;
      expect(reason)
        .to.match(/^refused to connect to `n\d+\.example`: /)
        .and.include(`${address} ${forbidden[address]}`);
      expect(reason?.includes("list the host in `egress.private_hosts`")).to.equal(!reason?.includes("metadata"));
    }
    expect(witness.connections).to.equal(0);
    expect(await network.connections()).to.deep.equal([]);
    await network.connectUnguarded(Object.keys(names).map((host) => ({ host, port: witness.port })));
    await until(() => witness.connections === addresses.length, "connections without the guard to each address");
  });

  it("are the operator's own where the configuration says so, but for metadata services [S38]", async () => {
    const inner = ["10.1.2.3", "192.168.7.7", "fd12::1", "169.254.7.7", "198.18.0.1"];
    const routes = Object.fromEntries([...inner, "93.184.216.34"].map((address) => [address, server.port]));
    const names = {
      "tools.internal": [["10.1.2.3"]],
      tools: [["192.168.7.7"]],
      "mcp.corp.example": [["198.18.0.1"]],
      "a.lan.example": [["fd12::1"]],
      "public.example": [["93.184.216.34"]],
      "metadata.internal": [["169.254.169.254"]],
      "listed.example": [["169.254.169.254"]],
    };
    await network.write(names, { ...routes, "169.254.169.254": witness.port });
    const urls = [
      server.url,
      `http://localhost:${server.port}`,
      "http://10.1.2.3",
      "http://[fd12::1]",
      "http://169.254.7.7",
      ...Object.keys(names).map((name) => `http://${name}`),
      "http://169.254.169.254",
      "http://[::ffff:169.254.169.254]",
    ];
    const more = `egress: { private_hosts: [mcp.corp.example, "*.lan.example", listed.example] }`;
    const found = await states(urls, more);
    const isUp = (url: string): boolean => !/metadata|listed|169\.254\.169|a9fe/.test(url);
    expect(found.map(({ state }, at) => [urls[at], state])).to.deep.equal(
      urls.map((url) => [url, isUp(url) ? "up" : "down"]),
    );
    expect(witness.connections).to.equal(0);
  });

  it("are never the gateway's own ports, by whatever name [S38]", async () => {
    const [gatewayPort, adminPort, metricsPort] = (await freePorts(3)) as [number, number, number];
    const listen = `listen: { gateway_port: ${gatewayPort}, admin_port: ${adminPort}, metrics_port: ${metricsPort} }`;
    await network.write({
      self: [["127.0.0.1"]],
      "self.example": [["0.0.0.0"]],
      "six.internal": [["::ffff:127.0.0.1"]],
    });
    const urls = [
      `http://127.0.0.1:${gatewayPort}/mcp`,
      `http://2130706433:${adminPort}/mcp`,
      `http://0x7f000001:${metricsPort}/mcp`,
      `http://[::ffff:7f00:1]:${adminPort}/mcp`,
      `http://0.0.0.0:${adminPort}/mcp`,
      `http://localhost:${adminPort}/mcp`,
      `http://self:${gatewayPort}/mcp`,
      `http://self.example:${metricsPort}/mcp`,
      `http://six.internal:${adminPort}/mcp`,
    ];
    const found = await states([server.url, ...urls], "egress: { private_hosts: [self.example] }", listen);
    const [served, ...own] = found;
    expect(served?.state).to.equal("up");
    for (const { reason } of own)
      expect(reason).to.match(/^refused to connect to `.*`: \S+ port \d+ is the gateway itself$/);
    const opened = new Set(await network.connections());
    expect([...opened], "of the gateway").to.deep.equal([`127.0.0.1 ${server.port}`]);
    await network.connectUnguarded([{ host: "self", port: adminPort }]);
    expect(await network.connections(), "without the guard").to.include(`127.0.0.1 ${adminPort}`);
  });

  it("are judged by `gateway doctor` as by the gateway", async () => {
    await network.write({ "tools.example": [["10.1.2.3"]] }, { "10.1.2.3": server.port });
    const [first] = await states(["http://tools.example/mcp"]);
    const doctor = ["doctor", "--config", `${gateway?.folder}/gateway.yaml`, "--admin", gateway?.adminUrl ?? ""];
    const { stdout } = await runGateway(doctor, { ...network.env, GATEWAY_API_KEY: siteKey });
    expect(stdout).to.include(first?.reason ?? "a reason");
    expect(await network.connections()).not.to.include("10.1.2.3 80");
  });
});
