import { expect } from "chai";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { until } from "../../support/webhook-receiver.ts";
import { type ClientName, clientConfig, clientEnv, clientFiles, clients, useClients } from "./every-client.ts";
import { Network, openWitnessPort, type WitnessPort } from "./network.ts";

describe("every client of the gateway", () => {
  let network: Network;
  let witness: WitnessPort;
  let gateway: RunningGateway | undefined;

  beforeEach(async () => {
    [network, witness] = await Promise.all([Network.open(), openWitnessPort()]);
    const names = clients.map((client) => [nameOf(client), [[addressOf(client)]]] as const);
    const routes = clients.map((client) => [addressOf(client), witness.port] as const);
    await network.write(Object.fromEntries(names), Object.fromEntries(routes));
  });

  afterEach(async () => {
    await gateway?.stop();
    gateway = undefined;
    await Promise.all([witness.close(), network.remove()]);
  });

  function nameOf(client: ClientName): string {
    return `${client}.clients.example`;
  }

  function addressOf(client: ClientName): string {
    return `10.0.0.${clients.indexOf(client) + 1}`;
  }

  /** Starts a gateway whose clients have public names with private addresses, and waits until each looked its name up. */
  async function start(more: string = ""): Promise<void> {
    const urlOf = (client: ClientName): string => `https://${nameOf(client)}`;
    const env = { ...clientEnv, ...network.env };
    gateway = await startGateway({ config: clientConfig(urlOf, more), files: clientFiles, env });
    await useClients(gateway, urlOf("issuer"));
    await until(async () => (await network.lookUps()).size === clients.length, "a look-up of each client");
  }

  it("looks its public name up, and connects to no private address [S38]", async () => {
    await start();
    expect(witness.connections).to.equal(0);
    expect(await network.connections()).to.deep.equal([]);
  });

  it("connects to it where `egress.private_hosts` lists the domain", async () => {
    await start(`egress: { private_hosts: ["*.clients.example"] }`);
    const wanted = clients.map((client) => `${addressOf(client)} 443`);
    await until(async () => {
      const opened = new Set(await network.connections());
      return wanted.every((line) => opened.has(line));
    }, "a connection of each client");
    expect(witness.connections).to.be.above(0);
  });
});
