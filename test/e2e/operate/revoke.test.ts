import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import type { Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { Agent } from "../../support/agent.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { type Recorder, startRecorder } from "../../support/recorder.ts";
import { siteConfig, siteFiles, siteKey } from "../../support/site.ts";
import { dial, encodeRequest, type HeaderList, send } from "../../support/wire.ts";
import { LiveClient } from "../live/live-client.ts";

const otherKey = `test-${randomBytes(32).toString("base64url")}`;
const otherHash = createHash("sha256").update(otherKey).digest("hex");

describe("a reload", () => {
  let upstream: Recorder;
  let gateway: RunningGateway;
  let one: string;
  let both: string;

  before(async () => {
    upstream = await startRecorder();
    one = siteConfig({ remoteUrl: upstream.url });
    both = one.replace(
      "keys: [",
      `keys: [{ id: other, tenant: acme, role: viewer, key_hash: "sha256:${otherHash}" }, `,
    );
    gateway = await startGateway({ config: both, files: siteFiles() });
  });

  after(async () => {
    await gateway.stop();
    await upstream.stop();
  });

  it("that takes a key away ends what its holder has open, and nothing of anybody else", async () => {
    const [mine, theirs] = [await openStream(siteKey), await openStream(otherKey)];
    const [, watching] = [await watch(siteKey), await watch(otherKey)];
    const live = [siteKey, otherKey].map((key) => new LiveClient(gateway.url, { key }));
    await Promise.all(live.map((client) => client.open()));
    const ended = live[1]?.closed();
    await reload(one);
    await until(() => theirs.readableEnded && watching.readableEnded);
    expect(await ended).to.deep.equal([4401, "the key was removed"]);
    live[0]?.say("ping", {}, "still");
    await live[0]?.hear(({ id }) => id === "still");
    expect((await send(gateway.url, initialize(otherKey))).status).to.equal(401);
    expect(mine.readableEnded).to.equal(false);
    mine.destroy();
  });

  it("leaves what is no pack and no key as it was, says so, and so does evidence", async () => {
    const before = await digestOfCall();
    const said = await reload(one.replace("policy: {", "policy: { default_decision: allow,"));
    expect(said).to.include("restart_required");
    expect(before).to.match(/^sha256:/);
    expect(await digestOfCall()).to.equal(before);
    expect(await reload(one)).not.to.include("waits for a start");
  });

  /** Resolves with what the log says of it. */
  async function reload(config: string): Promise<string> {
    const before = gateway.stderr().length;
    await writeFile(join(gateway.folder, "gateway.yaml"), config);
    await until(() => gateway.stderr().slice(before).includes("configuration_reloaded"));
    return gateway.stderr().slice(before);
  }

  async function digestOfCall(): Promise<string | undefined> {
    const agent = new Agent(gateway.url, siteKey);
    await agent.call("echo");
    await agent.hangUp();
    const records = await new EvidenceReader(gateway.adminUrl, siteKey).recordsOf();
    return records.toSorted((a, b) => a.seq - b.seq).at(-1)?.config_digest;
  }

  /** The standing stream of a session of its own. */
  async function openStream(key: string): Promise<Socket> {
    const session = (await send(gateway.url, initialize(key))).headers.get("mcp-session-id") ?? "";
    return stream({ target: "/mcp", headers: [...headersOf(key), ["mcp-session-id", session]] });
  }

  /** A subscription of the stateless revision. */
  function watch(key: string): Promise<Socket> {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const params = { _meta, notifications: { toolsListChanged: true } };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "subscriptions/listen", params });
    const named: HeaderList = [
      ["mcp-protocol-version", "2026-07-28"],
      ["mcp-method", "subscriptions/listen"],
    ];
    return stream({ method: "POST", target: "/mcp", headers: [...headersOf(key), ...named], body });
  }

  async function stream(request: Parameters<typeof encodeRequest>[1]): Promise<Socket> {
    const socket = await dial(gateway.url);
    socket.write(encodeRequest(gateway.url, request));
    await once(socket, "data");
    socket.resume();
    return socket;
  }
});

function headersOf(key: string): HeaderList {
  return [
    ["x-api-key", key],
    ["content-type", "application/json"],
    ["accept", "text/event-stream"],
  ];
}

function initialize(key: string): Parameters<typeof send>[1] {
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params });
  const accept: HeaderList[number] = ["accept", "application/json"];
  return { method: "POST", target: "/mcp", headers: [...headersOf(key).slice(0, 2), accept], body };
}

async function until(condition: () => boolean): Promise<void> {
  for (const end = performance.now() + 60_000; !condition(); await sleep(20)) {
    if (performance.now() > end) throw new Error("expected it within 5 s");
  }
}
