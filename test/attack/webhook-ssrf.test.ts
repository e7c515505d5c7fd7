import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";
import { expect } from "chai";
import { EgressGuard } from "../../core/egress/egress-guard.ts";
import { HttpWitness } from "../../core/evidence/witness/witness-http.ts";
import type { WebhookDelivery } from "../../core/notify/outbox.ts";
import { Receiver } from "../../core/notify/receiver.ts";
import { openWitnessPort, type WitnessPort } from "../e2e/egress/network.ts";
import { makeWebhook } from "../support/notify-world.ts";

const delivery: WebhookDelivery = {
  id: "msg_1",
  type: "approval.pending",
  time: "2026-05-01T10:00:00.000Z",
  body: "{}",
  attempts: 0,
  status: null,
  notBefore: 0,
};

/** A metadata service, in the spellings that a URL turns into its address. */
const metadata = [
  ...["169.254.169.254", "169.254.169.254.", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518"],
  ...["[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::1]", "[fd00:ec2::254]", "100.100.100.200"],
];
/** This machine, in as many. */
const here = [
  "127.0.0.1",
  "127.1",
  "2130706433",
  "0x7f.1",
  "0177.0.0.1",
  "0",
  "0.0.0.0",
  "localhost",
  "[::ffff:127.0.0.1]",
];

describe("what a webhook's receiver or a witness leads to", () => {
  let hidden: WitnessPort;
  let server: Server;
  let answer = "";
  let requests = 0;

  before(async () => {
    hidden = await openWitnessPort();
    server = createServer((socket) => {
      socket
        .on("error", () => undefined)
        .once("data", () => {
          requests++;
          socket.end(answer);
        });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  after(async () => {
    server.close();
    await hidden.close();
  });

  async function post(url: string, egress: EgressGuard): Promise<string> {
    const receiver = new Receiver(makeWebhook(url, { timeoutMs: 10_000 }), 1, Date.now, egress);
    const { outcome, fault } = await receiver.post(delivery);
    await receiver.close();
    return fault ?? outcome;
  }

  /** Both ways to a witness. */
  async function askWitness(url: string, egress: EgressGuard): Promise<readonly string[]> {
    const witness = new HttpWitness({ name: "w", url, headers: { authorization: "secret" }, egress });
    const told = (error: Error): string => `${(error.cause as { code?: string } | undefined)?.code ?? error.message}`;
    return [
      await witness.latest("chain").then((note) => note ?? "nothing", told),
      await witness.append("chain", "note\n").then(() => "kept", told),
    ];
  }

  it("is nobody, whatever it answers: no place that it names is connected to [S38]", async () => {
    const egress = new EgressGuard({ privateHosts: [] });
    const own = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const to = `127.0.0.1:${hidden.port}`;
    const places = [`http://${to}/`, `//${to}/`, `http:${to}`, `http://u:p@${to}/`, `/\\${to}/`, "file:///etc/passwd"];
    const headers = [
      ...places.map((place) => `Location: ${place}`),
      `Location: http://${to}/\r\nLocation: http://${to}/again`,
      `Refresh: 0;url=http://${to}/`,
      `Alt-Svc: h2="${to}"; ma=86400, h3="${to}"`,
      `Link: <http://${to}/>; rel=preload`,
      `Content-Location: http://${to}/`,
      `Connection: upgrade\r\nUpgrade: h2c`,
      `Proxy-Authenticate: Basic\r\nLocation: http://${to}/`,
    ];
    let tried = 0;
    for (const status of [200, 300, 301, 302, 303, 305, 307, 308, 401, 407]) {
      for (const header of headers) {
        answer = `HTTP/1.1 ${status} X\r\n${header}\r\nContent-Length: 0\r\n\r\n`;
        await post(`http://${own}/hook`, egress);
        await askWitness(`http://${own}/notes`, egress);
        tried += 3;
      }
    }
    for (const first of [
      "101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c",
      `103 Early Hints\r\nLink: <http://${to}/>`,
    ]) {
      answer = `HTTP/1.1 ${first}\r\n\r\nHTTP/1.1 302 X\r\nLocation: http://${to}/\r\nContent-Length: 0\r\n\r\n`;
      expect(await post(`http://${own}/hook`, egress)).to.not.equal("delivered");
      expect((await askWitness(`http://${own}/notes`, egress))[1]).to.not.equal("kept");
      tried += 3;
    }
    // Each asked once: nothing was followed to the same place either.
    expect([requests, hidden.connections]).to.deep.equal([tried, 0]);
  });

  it("is never a metadata service, in whatever spelling, and whatever is stated to be private [S38]", async () => {
    for (const privateHosts of [[], metadata.filter((host) => !host.includes("["))]) {
      const egress = new EgressGuard({ privateHosts });
      for (const host of metadata) {
        expect(await post(`http://${host}/latest/meta-data`, egress), host).to.equal("EGRESS_REFUSED");
        expect(await askWitness(`http://${host}/latest`, egress), host).to.deep.equal([
          "EGRESS_REFUSED",
          "EGRESS_REFUSED",
        ]);
      }
    }
  });

  it("is never the gateway's own port, in whatever spelling of this machine [S38]", async () => {
    const egress = new EgressGuard({ privateHosts: ["localhost"] });
    egress.claimPort(hidden.port);
    for (const host of here) {
      const url = `http://${host}:${hidden.port}/admin/v1/kills`;
      expect(await post(url, egress), host).to.equal("EGRESS_REFUSED");
      expect(await askWitness(url, egress), host).to.deep.equal(["EGRESS_REFUSED", "EGRESS_REFUSED"]);
    }
    expect(hidden.connections).to.equal(0);
    await post(`http://127.0.0.1:${hidden.port}/`, new EgressGuard({ privateHosts: [] }));
    expect(hidden.connections, "without the claim").to.equal(1);
  });
});
