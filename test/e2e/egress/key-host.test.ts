import { expect } from "chai";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { siteConfig, siteFiles } from "../../support/site.ts";
import { newIssuerKey, signToken } from "../../support/token-issuer.ts";
import { until } from "../../support/webhook-receiver.ts";
import { type LocalServer, Network, openWitnessPort, serve, type WitnessPort } from "./network.ts";

/** Spellings of hosts at which metadata of an issuer could name signing keys. */
const spellings: readonly string[] = [
  "127.0.0.1",
  "127.1",
  "2130706433",
  "0x7f000001",
  "0177.0.0.1",
  "%31%32%37.0.0.1",
  "１２７。０。０。１",
  "0.0.0.0",
  "[::ffff:127.0.0.1]",
  "[::ffff:7f00:1]",
  "[::1]",
  "localhost",
  "keys.internal",
  "keys.example",
];

describe("an address of signing keys that an issuer names", () => {
  let network: Network;
  let issuer: LocalServer;
  let witness: WitnessPort;
  let gateway: RunningGateway | undefined;
  let host: string;
  let metadataCount: number;

  beforeEach(async () => {
    [network, witness] = await Promise.all([Network.open(), openWitnessPort()]);
    await network.write({ "keys.internal": [["127.0.0.1"]], "keys.example": [["10.1.2.3"]] }, addresses());
    [host, metadataCount] = ["127.0.0.1", 0];
    issuer = await serve((_, response) => {
      metadataCount++;
      const metadata = { issuer: issuer.url, jwks_uri: `http://${host}:${witness.port}/jwks` };
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(metadata));
    });
  });

  afterEach(async () => {
    await gateway?.stop();
    gateway = undefined;
    await Promise.all([issuer.close(), witness.close(), network.remove()]);
  });

  function addresses(): Readonly<Record<string, number>> {
    return { "10.1.2.3": witness.port, "::1": witness.port };
  }

  async function start(oauth: string, more: string = ""): Promise<void> {
    const all = `{ issuer: "${issuer.url}", audience: "https://gateway.example/mcp", tenant: acme, jwks_refetch_seconds: 1${oauth} }`;
    const config = siteConfig({ more: `oauth: ${all}\nlimits: { unauthenticated_per_minute: 1000000 }\n${more}` });
    gateway = await startGateway({ config, files: siteFiles(), env: network.env });
  }

  /** Presents a token until the gateway asked the issuer once more, and that fetch has ended. */
  async function present(): Promise<void> {
    const claims = { iss: issuer.url, aud: "https://gateway.example/mcp", sub: "a", exp: 4_000_000_000 };
    const headers = { authorization: `Bearer ${await signToken(newIssuerKey("first"), claims)}` };
    const before = metadataCount;
    await until(async () => {
      const response = await fetch(`${gateway?.url}/mcp`, { method: "POST", headers });
      expect(response.status).to.equal(401);
      await response.text();
      return metadataCount > before;
    }, "a fetch of the metadata");
  }

  it("is not connected to unless it is public, however it is written [S38]", async () => {
    await start("");
    for (host of spellings) await present();
    expect(witness.connections).to.equal(0);
    const opened = new Set(await network.connections());
    expect([...opened]).to.deep.equal([`127.0.0.1 ${new URL(issuer.url).port}`]);
    expect(gateway?.stderr()).to.include("egress_refused");
  }).timeout(120_000);

  it("is connected to where the configuration names its host", async () => {
    await start("", `egress: { private_hosts: ["127.0.0.1"] }`);
    host = "2130706433";
    await present();
    expect(witness.connections).to.equal(1);
  });

  it("is connected to where it is the configured one", async () => {
    await start(`, jwks_uri: "http://127.0.0.1:${witness.port}/jwks"`);
    const claims = { iss: issuer.url, aud: "https://gateway.example/mcp", sub: "a", exp: 4_000_000_000 };
    const headers = { authorization: `Bearer ${await signToken(newIssuerKey("first"), claims)}` };
    expect((await fetch(`${gateway?.url}/mcp`, { method: "POST", headers })).status).to.equal(401);
    expect(witness.connections).to.equal(1);
  });
});
