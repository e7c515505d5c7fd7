import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, connect as connectTcp, createServer as createTcpServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { expect } from "chai";
import { connectToOwner, ReplicaChannel, type ReplicaPort } from "../../../core/replica/channel.ts";
import { deriveReplicaKey } from "../../../core/replica/shared-key.ts";
import { eventually, ReplicaSite } from "../../support/replica-site.ts";
import { siteKey } from "../../support/site.ts";
import { LiveClient } from "../live/live-client.ts";

const secret = randomBytes(32).toString("hex");
const epoch = 7;
const connecting = new Set<Socket>();

describe("the port at which a replica takes what others forward", () => {
  let channel: ReplicaChannel;
  let address: string;
  const taken: { readonly port: ReplicaPort; readonly from: string | undefined }[] = [];

  before(async () => {
    channel = await ReplicaChannel.open({
      host: "127.0.0.1",
      port: 0,
      secret,
      maxConnections: 8,
      doorOf: (port, asked) => {
        if (asked !== epoch) return undefined;
        return (socket) => {
          taken.push({ port, from: socket.remoteAddress });
          socket.pipe(socket);
        };
      },
    });
    address = `127.0.0.1:${channel.port}`;
  });

  beforeEach(() => taken.splice(0));

  after(() => channel.close());

  const good = { port: "gateway", client: "192.0.2.1", epoch } as const;

  /** Connects to the port as one that knows the secret. */
  function speak(): Socket {
    const socket = connectTls({
      host: "127.0.0.1",
      port: channel.port,
      ciphers: "ECDHE-PSK-CHACHA20-POLY1305",
      minVersion: "TLSv1.2",
      maxVersion: "TLSv1.2",
      pskCallback: () => ({ identity: "gateway-replica", psk: deriveReplicaKey(secret, "channel") }),
      checkServerIdentity: () => undefined,
    });
    return socket.on("error", () => undefined).resume();
  }

  /** Says something to the port as one that knows the secret, and returns all that it answers until it hangs up. */
  async function say(line: string): Promise<string> {
    const socket = speak();
    let heard = "";
    socket.on("data", (bytes) => {
      heard += String(bytes);
    });
    socket.write(line);
    await closed(socket);
    return heard;
  }

  /** A peer that knows the secret is served: what came before holds no place. */
  async function expectServes(): Promise<void> {
    const before = taken.length;
    const { socket } = await connectToOwner({ ...good, address, secret, connecting });
    socket.resume().write("hello");
    const [bytes] = (await once(socket, "data")) as [Buffer];
    expect(String(bytes)).to.equal("hello");
    expect(taken.slice(before)).to.deep.equal([{ port: "gateway", from: "192.0.2.1" }]);
    await hangUp(socket);
  }

  async function hangUp(socket: Socket): Promise<void> {
    socket.destroy();
    if (!socket.closed) await closed(socket);
  }

  it("takes a connection of a peer with the secret, with the address of its client [S86]", async () => {
    await expectServes();
    for (const port of ["admin", "metrics"] as const) {
      const { socket } = await connectToOwner({ ...good, port, client: "2001:db8::1", address, secret, connecting });
      await hangUp(socket);
    }
    expect(taken.slice(1)).to.deep.equal([
      { port: "admin", from: "2001:db8::1" },
      { port: "metrics", from: "2001:db8::1" },
    ]);
  });

  it("takes nothing of a peer with another secret [S86]", async () => {
    expect(await failure(connectToOwner({ ...good, address, secret: `${secret}x`, connecting }))).to.be.instanceOf(
      Error,
    );
    expect(taken).to.deep.equal([]);
    await expectServes();
  });

  it("takes nothing for an owner of another epoch [S86]", async () => {
    for (const other of [epoch - 1, epoch + 1]) {
      const error = await failure(connectToOwner({ ...good, epoch: other, address, secret, connecting }));
      expect(String(error)).to.include("got another replica");
    }
    expect(taken).to.deep.equal([]);
    await expectServes();
  });

  const lines: Readonly<Record<string, string>> = {
    "an unknown port": JSON.stringify({ ...good, port: "channel" }),
    "a port that every object has": JSON.stringify({ ...good, port: "constructor" }),
    "a client without an address": JSON.stringify({ ...good, client: "somebody" }),
    "an epoch that is text": JSON.stringify({ ...good, epoch: String(epoch) }),
    "no epoch": JSON.stringify({ port: "gateway", client: "192.0.2.1" }),
    "an array": "[]",
    "what is no JSON": "GET / HTTP/1.1\r",
    "an empty line": "",
    "a line that is too long": JSON.stringify({ ...good, more: "x".repeat(2_000) }),
  };
  for (const [what, line] of Object.entries(lines)) {
    it(`takes nothing of a peer with the secret that sends ${what}`, async () => {
      expect(await say(`${line}\n`)).to.be.oneOf(["", "not the owner\n"]);
      expect(taken).to.deep.equal([]);
      await expectServes();
    });
  }

  it("hangs up on garbage in place of encryption", async () => {
    for (const garbage of [Buffer.from("GET / HTTP/1.1\r\nhost: a\r\n\r\n"), randomBytes(4_096)]) {
      const socket = connectTcp(channel.port, "127.0.0.1");
      socket.on("error", () => undefined).resume();
      socket.write(garbage);
      await closed(socket);
    }
    expect(taken).to.deep.equal([]);
    await expectServes();
  });

  it("is given up at once by whoever waits for an owner that stands still and was replaced [S86]", async () => {
    // The system accepts connections for a process that does not.
    const still = createTcpServer(() => undefined).listen(0, "127.0.0.1");
    await once(still, "listening");
    const { port } = still.address() as AddressInfo;
    const rejected = failure(connectToOwner({ ...good, address: `127.0.0.1:${port}`, secret, connecting }));
    await once(still, "connection");
    expect(connecting.size).to.equal(1);
    for (const socket of connecting) socket.destroy();
    expect(String(await rejected)).to.include("cannot be reached");
    expect(connecting.size).to.equal(0);
    still.close();
  });

  it("serves again where every place was held by peers that say nothing", async () => {
    const silent = Array.from({ length: 8 }, () => connectTcp(channel.port, "127.0.0.1"));
    const ends = silent.map((socket) => closed(socket.on("error", () => undefined).resume()));
    // Some begin to speak, and stop amid it.
    for (const socket of silent.slice(4)) socket.write(Buffer.from([0x16, 0x03, 0x01]));
    await Promise.all(ends);
    expect(taken).to.deep.equal([]);
    await expectServes();
  });

  it("serves again where every place was held by peers with the secret that send a byte now and then", async () => {
    const slow = Array.from({ length: 8 }, () => speak());
    const ends = slow.map(closed);
    const writing = setInterval(() => {
      for (const socket of slow) socket.write(" ");
    }, 500);
    await Promise.all(ends);
    clearInterval(writing);
    expect(taken).to.deep.equal([]);
    await expectServes();
  });

  it("hangs up on a peer with the secret that sends half a line", async () => {
    expect(await say('{"port":"gateway"')).to.equal("");
    expect(taken).to.deep.equal([]);
    await expectServes();
  });
});

describe("a stream through a replica that is not the owner", () => {
  let site: ReplicaSite;

  before(async () => {
    site = await ReplicaSite.start(2_000, 2);
  });

  after(() => site.stop());

  it("tells decisions on a WebSocket as they are made, and ends with the owner", async () => {
    const owner = site.group.owner();
    const other = 1 - owner;
    const client = await new LiveClient(site.url(other), { key: siteKey }).open();
    client.say("subscribe", { channels: ["decisions"] }, "s");
    await client.hear(({ type, id }) => type === "subscribed" && id === "s");
    for (const index of [0, 1]) expect((await site.call(site.url(index), `live-${index}`)).end).to.equal("answered");
    const tools = (): number => client.heard.filter(({ type }) => type === "event").length;
    await eventually("two decisions", () => tools() >= 2);
    const closed = client.closed();
    await site.group.member(owner).kill9();
    await closed;
    await site.serves(site.url(other));
    const again = await new LiveClient(site.url(other), { key: siteKey }).open();
    again.socket.terminate();
  });
});

describe("a call through a replica, to an owner that stands still for a while", () => {
  let site: ReplicaSite;

  before(async () => {
    site = await ReplicaSite.start(30_000, 2);
  });

  after(() => site.stop());

  it("is quiet for longer than a machine may answer nothing, and is answered [S86]", async () => {
    const owner = site.group.owner();
    const quiet = site.call(site.url(1 - owner), "quiet", { wait_ms: 1_000 });
    await eventually("the call to be dispatched", async () => (await site.reached()).includes("quiet"));
    const { process: stopped } = site.group.member(owner);
    stopped.kill("SIGSTOP");
    try {
      await sleep(8_000);
    } finally {
      stopped.kill("SIGCONT");
    }
    const sent = await quiet;
    expect(sent.end, sent.cause).to.equal("answered");
    expect(site.group.member(1 - owner).stderr()).to.not.include("replica_owner_unreachable");
    await site.expectSettled([sent], owner);
  });
});

async function failure(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => null,
    (error: unknown) => error,
  );
}

/** Resolves once a connection has ended; a reset ends it, too. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.once("close", () => resolve());
  });
}
