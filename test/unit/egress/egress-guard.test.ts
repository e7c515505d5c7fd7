import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";
import { networkInterfaces } from "node:os";
import { expect } from "chai";
import { destinationOf, type HostSource, PrivateHosts } from "../../../core/egress/destination.ts";
import { EgressError, EgressGuard } from "../../../core/egress/egress-guard.ts";
import { isOwnAddress } from "../../../core/egress/own-address.ts";
import { SeededRandom } from "../../support/detection/random.ts";
import { until } from "../../support/webhook-receiver.ts";

describe("EgressGuard.connector(url, timeoutMs, source)", () => {
  let server: Server;
  let port: number;
  let connections = 0;

  before(async () => {
    server = createServer((socket) => {
      connections++;
      socket.on("error", () => undefined).resume();
    }).listen(0, "0.0.0.0");
    await once(server, "listening");
    ({ port } = server.address() as AddressInfo);
  });

  beforeEach(() => {
    connections = 0;
  });

  after(async () => {
    server.close();
    await once(server, "close");
  });

  /** Opens a connection as undici does; resolves with its error, or undefined once it is open, and closes it. */
  function connectTo(guard: EgressGuard, host: string, source: HostSource): Promise<Error | undefined> {
    const url = new URL(`http://${host}:${port}/`);
    const hostname = url.hostname.replace(/^\[(.*)\]$/, "$1");
    const options = { host: url.host, hostname, protocol: url.protocol, port: url.port };
    return new Promise((resolve) => {
      guard.connector(
        url,
        5_000,
        source,
      )(options, (error, socket) => {
        socket?.destroy();
        resolve(error ?? undefined);
      });
    });
  }

  it("connects to an address that the configuration states, and reports nothing", async () => {
    const refusals: EgressError[] = [];
    const guard = new EgressGuard({ privateHosts: [], onRefused: (refusal) => refusals.push(refusal) });
    for (const host of ["127.0.0.1", "127.1", "0x7f000001", "localhost"]) {
      expect(await connectTo(guard, host, "configuration")).to.equal(undefined);
    }
    expect([refusals, connections]).to.deep.equal([[], 4]);
  });

  it("refuses the same one where an answer names it, with host, zone and setting, and reports it once", async () => {
    const refusals: EgressError[] = [];
    const guard = new EgressGuard({ privateHosts: [], onRefused: (refusal) => refusals.push(refusal) });
    const error = await connectTo(guard, "2130706433", "answer");
    expect(error).to.be.instanceOf(EgressError).with.property("code", "EGRESS_REFUSED");
    expect(error?.message).to.equal(
      "refused to connect to `127.0.0.1`: its address 127.0.0.1 is loopback; if that is meant, list the host in `egress.private_hosts`",
    );
    expect([refusals, connections]).to.deep.equal([[error], 0]);
  });

  it("refuses a claimed port on every address of this machine, and no other port", async () => {
    const guard = new EgressGuard({ privateHosts: ["127.0.0.1", "localhost"] });
    expect(await connectTo(guard, "127.0.0.1", "configuration")).to.equal(undefined);
    guard.claimPort(port);
    const own = Object.values(networkInterfaces()).flatMap((found) => found ?? []);
    const ipv4 = own.filter(({ family }) => family === "IPv4").map(({ address }) => address);
    for (const host of [...ipv4, "127.9.9.9", "0.0.0.0", "[::ffff:127.0.0.1]", "localhost"]) {
      const error = await connectTo(guard, host, "configuration");
      expect(error?.message, host).to.match(/port \d+ is the gateway itself$/);
    }
    expect(connections).to.equal(1);
  });

  it("fails with the error of the system where a name cannot be resolved", async () => {
    const error = await connectTo(new EgressGuard({ privateHosts: [] }), "nobody.invalid", "configuration");
    expect(error).not.to.be.instanceOf(EgressError);
    expect(error)
      .to.have.property("code")
      .that.matches(/^(?:ENOTFOUND|EAI_AGAIN)$/);
  });

  it("connects to no spelling of a forbidden address that an answer names, but where the configuration states it [S38]", async () => {
    const random = new SeededRandom(38);
    const guard = new EgressGuard({ privateHosts: ["tools.example"] });
    const own: string[] = [];
    for (let round = 0; round < 5_000; round++) {
      const bytes = forbiddenBytes(random);
      const host = spell(bytes, random);
      expect(await connectTo(guard, host, "answer"), host).to.be.instanceOf(EgressError);
      if (bytes[0] === 127 && !host.startsWith("[") && own.length < 50) own.push(host);
    }
    expect(connections).to.equal(0);
    for (const host of own) expect(await connectTo(guard, host, "configuration"), host).to.equal(undefined);
    await until(() => connections === own.length, "as many connections");
    expect(own.length).to.equal(50);
  });
});

const forbiddenBlocks: readonly (readonly number[])[] = [
  [127],
  [10],
  [192, 168],
  [172, 16],
  [100, 64],
  [169, 254],
  [169, 254, 169, 254],
  [100, 100, 100, 200],
  [198, 18],
  [0, 0, 0, 0],
  [224],
  [255, 255, 255, 255],
];

/** An IPv4 address of a block that nobody's public server is in. */
function forbiddenBytes(random: SeededRandom): readonly number[] {
  const block = random.pick(forbiddenBlocks);
  return [...block, ...Array.from({ length: 4 - block.length }, () => random.below(256))];
}

/** Writes an IPv4 address as the host of a URL, in one of the forms that clients read. */
function spell(bytes: readonly number[], random: SeededRandom): string {
  const [a = 0, b = 0, c = 0, d = 0] = bytes;
  const write = (value: number): string =>
    random.pick([
      String(value),
      `0x${value.toString(16)}`,
      `0X${value.toString(16).toUpperCase()}`,
      `0${value.toString(8)}`,
      `000${value.toString(8)}`,
    ]);
  const hex = (high: number, low: number): string => (high * 256 + low).toString(16);
  const [first, second] = [hex(a, b), hex(c, d)];
  return random.pick([
    () => bytes.map(write).join("."),
    () => [write(a), write(b), write(c * 256 + d)].join("."),
    () => [write(a), write(b * 65_536 + c * 256 + d)].join("."),
    () => write(((a * 256 + b) * 256 + c) * 256 + d),
    () => `${bytes.join(".")}.`,
    () => bytes.join(random.pick(["。", "．", "｡", "%2e", "%E3%80%82"])),
    () => bytes.join(".").replace(/\d/g, (digit) => String.fromCharCode(0xff10 + Number(digit))),
    () => bytes.join(".").replace(/\d/g, (digit) => `%3${digit}`),
    () => `[::ffff:${bytes.join(".")}]`,
    () => `[0:0:0:0:0:FFFF:${first}:${second}]`,
    () => `[::ffff:0:${bytes.join(".")}]`,
    () => `[64:ff9b::${bytes.join(".")}]`,
    () => `[64:ff9b:1::${first}:${second}]`,
    () => `[2002:${first}:${second}::1]`,
    () => `[2001:0:1:2:3:4:${hex(255 - a, 255 - b)}:${hex(255 - c, 255 - d)}]`,
    () => `[fe80::5efe:${bytes.join(".")}]`,
    () => `[::${first}:${second}]`,
  ])();
}

describe("destinationOf(url, source, privateHosts)", () => {
  const privateHosts = new PrivateHosts(["MCP.corp.example", "*.lan.example", "fd00::0:1"]);
  const table: readonly (readonly [string, HostSource, string])[] = [
    ["http://api.example", "configuration", "public"],
    ["http://lan.example", "configuration", "public"],
    ["http://corp.example", "configuration", "public"],
    ["http://amcp.corp.example", "configuration", "public"],
    ["http://metadata.google.internal", "configuration", "public"],
    ["http://localhost:1", "configuration", "loopback"],
    ["http://a.localhost.", "configuration", "loopback"],
    ["http://tools", "configuration", "public private loopback"],
    ["http://tools.default.svc.cluster.local", "configuration", "public private loopback"],
    ["http://10.0.0.1", "configuration", "public private loopback link_local reserved"],
    ["http://mcp.corp.example.", "configuration", "public private loopback link_local reserved"],
    ["http://a.b.lan.example", "configuration", "public private loopback link_local reserved"],
    ["http://tools", "answer", "public"],
    ["http://localhost", "answer", "public"],
    ["http://10.0.0.1", "answer", "public"],
    ["http://[fd00::1]", "answer", "public private loopback link_local reserved"],
    ["http://a.lan.example", "answer", "public private loopback link_local reserved"],
  ];
  for (const [url, source, zones] of table) {
    it(`permits ${zones} for ${url} of ${source === "answer" ? "an answer" : "the configuration"}`, () => {
      expect([...destinationOf(new URL(url), source, privateHosts).zones].join(" ")).to.equal(zones);
    });
  }

  it("finds the port of the scheme", () => {
    const portOf = (url: string): number => destinationOf(new URL(url), "configuration", privateHosts).port;
    expect(["http://a", "https://a", "https://a:80"].map(portOf)).to.deep.equal([80, 443, 80]);
  });
});

describe("isOwnAddress(address)", () => {
  it("is true for loopback, the unspecified address and each address of an interface, in each form", () => {
    const interfaces = Object.values(networkInterfaces()).flatMap((found) => found ?? []);
    const own = interfaces.flatMap(({ address, family }) =>
      family === "IPv4" ? [address, `::ffff:${address}`] : [address, `${address}%lo`],
    );
    for (const address of [...own, "127.0.0.1", "127.255.0.1", "0.0.0.0", "::", "::1", "::ffff:7f00:1"]) {
      expect(isOwnAddress(address), address).to.equal(true);
    }
  });

  it("is false for others", () => {
    for (const address of ["93.184.216.34", "192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1"]) {
      expect(isOwnAddress(address), address).to.equal(false);
    }
  });
});
