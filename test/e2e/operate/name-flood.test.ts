import { createHash } from "node:crypto";
import { expect } from "chai";
import { WebSocket } from "ws";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { settledGrowth } from "../../support/resident.ts";
import { type Scrape, scrape } from "../../support/scrape.ts";
import { siteConfig, siteFiles, siteKey } from "../../support/site.ts";
import { LiveClient } from "../live/live-client.ts";
import { pour } from "./flood.ts";

/** How many distinct names of each kind are sent; `FLOOD_NAMES=100000` makes those of the requirement. */
const names = Number(process.env.FLOOD_NAMES ?? 1_500);
const connections = process.env.FLOOD_NAMES === undefined ? 300 : Math.min(names, 1_000);
const mebibyte = 1_048_576;

type Send = (gateway: RunningGateway, name: (index: number) => string) => Promise<unknown>;

interface Request {
  readonly method?: string;
  readonly target: string;
  readonly key?: string;
  readonly body?: object;
}

function encode(host: string, { method = "GET", target, key = siteKey, body }: Request): string {
  const text = body === undefined ? "" : JSON.stringify(body);
  const content = body === undefined ? "" : `content-type: application/json\r\ncontent-length: ${text.length}\r\n`;
  return `${method} ${target} HTTP/1.1\r\nhost: ${host}\r\nx-api-key: ${key}\r\naccept: application/json\r\n${content}\r\n${text}`;
}

/** Sends as many requests, each made of another name, and expects the same status of all. */
function each(port: "url" | "adminUrl" | "metricsUrl", status: number, request: (name: string) => Request): Send {
  return async (gateway, name) => {
    const { host } = new URL(gateway[port]);
    const statuses = await pour(gateway[port], names, (index) => encode(host, request(name(index))));
    expect(statuses).to.deep.equal({ [status]: names });
  };
}

const actionOn = (name: string): object => ({
  protocol: "mcp",
  tool: name,
  target: name,
  capability: "read",
  arguments: {},
});
const hex = (name: string): string => createHash("sha256").update(name).digest("hex");

/** What callers may name, and what names nothing that there is. */
const floods: Readonly<Record<string, Send>> = {
  "keys that nobody has, on the gateway port": each("url", 401, (name) => ({
    method: "POST",
    target: "/mcp",
    key: name,
    body: {},
  })),
  "keys that nobody has, on the admin port": each("adminUrl", 401, (name) => ({
    target: "/admin/v1/sessions",
    key: name,
  })),
  "keys that nobody has, on the metrics port": each("metricsUrl", 401, (name) => ({ target: "/", key: name })),
  "paths that are not there": each("adminUrl", 404, (name) => ({ target: `/admin/v1/${name}` })),
  "approvals that are not there": each("adminUrl", 404, (name) => ({
    target: `/admin/v1/approvals/apr_${hex(name).slice(0, 32)}`,
  })),
  "sessions that are not there": each("adminUrl", 404, (name) => ({
    target: `/admin/v1/sessions/session-v1-${hex(name)}`,
  })),
  "manifests that are not there": each("adminUrl", 404, (name) => ({ target: `/admin/v1/manifests/${name}` })),
  "tools of described actions": each("adminUrl", 200, (name) => ({
    method: "POST",
    target: "/admin/v1/test-action",
    body: actionOn(name),
  })),
  "names of GraphQL operations": each("adminUrl", 200, (name) => ({
    method: "POST",
    target: "/admin/v1/graphql",
    body: { query: `query ${name.replace("-", "_")} { evidence { seq } }` },
  })),
  "channels and questions of live connections": async (gateway, name) => {
    for (let index = 0; index < connections; index++) {
      const client = await new LiveClient(gateway.url, { key: siteKey }).open();
      client.say("subscribe", { channels: [name(index)] }, name(index));
      client.say(name(index), {}, name(index));
      client.say("evaluate", { action: actionOn(name(index)) }, name(index));
      await client.hear(({ type, id }) => type === "evaluation" && id === name(index));
      client.socket.close();
      if (client.socket.readyState !== WebSocket.CLOSED) await client.closed();
    }
  },
};

describe("what callers name", function () {
  this.timeout(600_000);
  let gateway: RunningGateway;

  before(async () => {
    const limits =
      "limits: { admin_requests_per_minute: 1000000, admin_unauthenticated_per_minute: 1000000, unauthenticated_per_minute: 1000000 }";
    const config = siteConfig({ role: "admin", more: `log: { level: error }\n${limits}` });
    gateway = await startGateway({ config, files: siteFiles(), ownProcess: true });
  });

  after(() => gateway.stop());

  for (const [what, send] of Object.entries(floods)) {
    it(`leaves neither series nor memory behind, nor a word on the page: ${what} [S68]`, async () => {
      await send(gateway, (index) => `warm-${index}`);
      await scrape(gateway.metricsUrl); // which is a request with series of its own
      const limit = 128 * mebibyte;
      const grown = await settledGrowth(limit, async (round) => {
        const before = await scrape(gateway.metricsUrl);
        await send(gateway, (index) => `flood-${round}${index}`);
        const after = await scrape(gateway.metricsUrl);
        expect(namesOf(after)).to.deep.equal(namesOf(before));
        expect([...after.keys()].filter((series) => /(?:flood|warm)[-_]\d/.test(series))).to.deep.equal([]);
        const memory = "process_resident_memory_bytes";
        return (after.get(memory) ?? 0) - (before.get(memory) ?? 0);
      });
      expect(grown).to.be.below(limit);
      expect(await page()).to.not.match(/(?:flood|warm)[-_]\d/);
    });
  }

  /** What the dashboard shows to who holds the key. */
  async function page(): Promise<string> {
    const headers = { accept: "application/json", "x-api-key": siteKey };
    const text = await (await fetch(gateway.metricsUrl, { headers })).text();
    expect(text.length).to.be.within(500, 100_000);
    return text;
  }
});

function namesOf(series: Scrape): readonly string[] {
  return [...series.keys()].filter((name) => name.startsWith("gateway_"));
}
