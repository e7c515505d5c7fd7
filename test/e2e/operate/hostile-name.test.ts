import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { terminalLine } from "../../../core/observe/log.ts";
import { runCommand } from "../../support/command-host.ts";
import { HeldSite, overHttp } from "../../support/held-site.ts";
import { type HostileName, hostileNames, unseen } from "../../support/hostile-name.ts";
import { MoodyUpstream } from "../../support/moody-upstream.ts";
import { webhookSecret } from "../../support/notify-world.ts";
import { type Route, type RouteId, routes } from "../../support/route-table.ts";
import { answer, until, WebhookReceiver } from "../../support/webhook-receiver.ts";
import { send, type WireResponse } from "../../support/wire.ts";
import { LiveClient } from "../live/live-client.ts";

const rules = `rules:
  - id: open.quote
    title: What says so is blocked
    decision: block
    severity: high
    risk: 10
    match: { phase: input, tool: quote }
    message: "it says {{ args.text }}"
`;

/** What one name left behind. */
interface Trace {
  readonly session: string;
  readonly pending: string;
}

/** Text in no more than printable ASCII, which nothing takes for a command. */
const printable = /^[\n -~]*$/;

const harmlessTag =
  /^<(?:!doctype html|\/?(?:html|head|body|title|style|h1|h2|h3|p|dl|dt|dd|code|table|thead|tbody|tr|th|td|ul|li|article|span)(?: (?:class|lang)="[a-z ]*")?|meta [a-zA-Z0-9 ="'&#;:,./+-]*)>$/;

/** Every name once in each place that agents, clients, upstreams and people may name, and what is shown of them then. */
describe("names that mean something to who shows them", function () {
  this.timeout(240_000);
  let folder: string;
  let upstream: MoodyUpstream;
  let receiver: WebhookReceiver;
  let site: HeldSite;
  const traces = new Map<HostileName, Trace>();
  const answers = new Map<string, WireResponse>();
  const printed = new Map<string, string>();
  /** Of `/v1/ws`, as they came. */
  const frames: string[] = [];
  let logs: readonly string[];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "hostile-name-"));
    upstream = await MoodyUpstream.start();
    const tool = (name: string): object => ({ name, description: name, inputSchema: { type: "object" } });
    upstream.publish(["echo", "quote", ...hostileNames.map(({ text }) => text)].map(tool));
    receiver = await WebhookReceiver.start();
    receiver.respond = (response) => answer(response, 410);
    site = new HeldSite({
      upstreams: [overHttp("moody", upstream.url)],
      approvals: `webhooks: [{ name: ops, tenant: acme, url: "${receiver.url}", secrets_env: [SECRET] }]`,
      env: { SECRET: webhookSecret },
      rules,
      more: "log: { level: debug }",
      folder,
    });
    await site.start();
    const watcher = await new LiveClient(site.gateway.url, { key: site.key("adam") }).open();
    watcher.socket.on("message", (data) => frames.push(String(data)));
    watcher.say("subscribe", { channels: ["decisions", "approvals", "risk"] });
    for (const name of hostileNames) traces.set(name, await useEverywhere(name, watcher));
    await readAll();
    watcher.socket.terminate();
    const { gateway } = site;
    await site.stop();
    logs = gateway
      .stderr()
      .split("\n")
      .filter((line) => line !== "");
  });
  after(async () => {
    await site.stop().catch(() => undefined);
    upstream.stop();
    receiver.stop();
    await rm(folder, { recursive: true });
  });

  async function useEverywhere({ text, mark }: HostileName, watcher: LiveClient): Promise<Trace> {
    const label: Record<string, string> = /^[!-~]+$/.test(text) ? { "x-gateway-session-id": text } : {};
    const post = async (message: object, headers: object = {}): Promise<Response> =>
      fetch(`${site.gateway.url}/mcp`, {
        method: "POST",
        headers: { "x-api-key": site.key("agent"), "content-type": "application/json", ...label, ...headers },
        body: JSON.stringify({ jsonrpc: "2.0", id: mark, ...message }),
      });
    const clientInfo = { name: text, version: text };
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
    const opened = await post({ method: "initialize", params });
    const session = { "mcp-session-id": opened.headers.get("mcp-session-id") ?? "none" };
    const call = async (name: string, args: object): Promise<string> =>
      (await post({ method: "tools/call", params: { name, arguments: args } }, session)).text();
    const held = async (args: object): Promise<string> =>
      /Approval (apr_[0-9a-f]{32})/.exec(await call("echo", args))?.[1] ?? "none";
    await call("quote", { text, [text]: text });
    for (const outcome of [
      { result: { content: [{ type: "text", text }] } },
      { error: { code: -32000, message: text } },
    ]) {
      upstream.mood = (response, id) => {
        response.writeHead(200, { "content-type": "application/json" });
        response.end(JSON.stringify({ jsonrpc: "2.0", id, ...outcome }));
      };
      const args = { [text]: text, outcome: Object.keys(outcome) };
      const id = await held(args);
      expect((await site.review(id, "approve", "rita", { comment: text })).status).to.equal(200);
      await call("echo", args);
    }
    const pending = await held({ [text]: text, mark });
    const described = { tool: text, target: text, arguments: { [text]: text } };
    watcher.say("evaluate", { action: described }, mark);
    watcher.say("evaluate", { action: { ...described, tool: "quote", arguments: { text } } }, `${mark} quoted`);
    await watcher.hear(({ id }) => id === `${mark} quoted`);
    const view = await ask("GET", `/admin/v1/approvals/${pending}`);
    const { id } = (JSON.parse(view.body) as { approval: { session: { id: string } } }).approval.session;
    await ask("POST", `/admin/v1/sessions/${id}/kill`, { note: text });
    await ask("POST", `/admin/v1/sessions/${id}/release`, { reason: text });
    return { session: id, pending };
  }

  function ask(method: string, target: string, body?: object): Promise<WireResponse> {
    return send(site.gateway.adminUrl, {
      method,
      target,
      headers: [
        ["x-api-key", site.key("adam")],
        ["content-type", "application/json"],
      ],
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  async function keep(method: string, target: string, body?: object): Promise<void> {
    answers.set(
      `${method} ${target}${body === undefined ? "" : JSON.stringify(body)}`,
      await ask(method, target, body),
    );
  }

  async function readAll(): Promise<void> {
    await until(
      async () => (await ask("GET", "/admin/v1/webhooks/dead-letters")).body.includes("apr_"),
      "dead letters",
    );
    for (const [, { port, method, path }] of Object.entries(routes) as [RouteId, Route][]) {
      if (port === "admin" && method === "GET" && !path.includes(":")) await keep(method, `${path}?limit=500`);
    }
    // Those whose name is no label share one.
    for (const session of new Set([...traces.values()].map((trace) => trace.session))) {
      const path = `/admin/v1/evidence/sessions/${session}`;
      for (const format of ["json", "md", "html"]) await keep("GET", `${path}/report?format=${format}`);
      for (const target of [`${path}?disclose=true&limit=500`, `/admin/v1/sessions/${session}`])
        await keep("GET", target);
      const query = `{ decisions { label tool target } session(id: "${session}") { history { tool } } records(session: "${session}") { items { whole } } }`;
      await keep("POST", "/admin/v1/graphql", { query });
    }
    for (const [{ text }, { pending }] of traces) {
      await keep("GET", `/admin/v1/approvals/${pending}`);
      await keep("POST", "/admin/v1/test-action", { tool: "quote", target: text, arguments: { text } });
      await keep("POST", "/admin/v1/test-action", { [text]: text });
      await keep("GET", `/admin/v1/approvals?state=${encodeURIComponent(text)}`);
      await keep("GET", `/admin/v1/approvals?${encodeURIComponent(text)}=1`);
    }
    const headers = [
      ["x-api-key", site.key("adam")],
      ["accept", "application/json"],
    ] as const;
    for (const target of ["/", "/metrics"])
      answers.set(target, await send(site.gateway.metricsUrl, { target, headers }));
    await runCommands();
  }

  async function runCommands(): Promise<void> {
    const environment = { GATEWAY_API_KEY: site.key("adam"), GATEWAY_ADMIN_URL: site.gateway.adminUrl };
    const everything = Object.fromEntries(hostileNames.map(({ text }) => [text, text]));
    const lines = ["approvals list", "approvals history", "sessions list", "sessions killed", "webhooks dead-letters"];
    lines.push(`approvals show ${await site.hold("echo", everything)}`);
    for (const { session } of [...traces.values()].slice(-1)) lines.push(`sessions show ${session}`);
    for (const line of lines.flatMap((each) => [each, `${each} --json`])) {
      const { code, stdout, stderr } = await runCommand(line.split(" "), environment);
      expect(code, stderr).to.equal(0);
      printed.set(line, stdout + stderr);
    }
  }

  /** The names whose mark is not in a text. */
  function missing(text: string): readonly string[] {
    return hostileNames.filter(({ mark }) => !text.includes(mark)).map(({ what }) => what);
  }

  const shown = (pattern: RegExp): readonly WireResponse[] =>
    [...answers].filter(([what]) => pattern.test(what)).map(([, answered]) => answered);

  it("are there: nothing below is true for want of them [S67]", () => {
    for (const pattern of [
      /\/report\?format=json/,
      /\/report\?format=md/,
      /\/report\?format=html/,
      /\/approvals\/apr_/,
      /\/approvals\/history/,
      /\?disclose=true/,
      /\/test-action/,
    ]) {
      const text = shown(pattern)
        .map(({ body }) => body)
        .join("\n");
      expect(missing(text), String(pattern)).to.deep.equal([]);
    }
    expect(missing(frames.join("\n"))).to.deep.equal([]);
    expect(missing(logs.join("\n"))).to.deep.equal([]);
    expect(missing([...printed.values()].join("\n"))).to.deep.equal([]);
  });

  it("are printable ASCII in every answer that is JSON, which no browser takes for anything else [S67]", () => {
    const json = [...answers].filter(([, { headers }]) => headers.get("content-type")?.includes("json"));
    expect(json.length).to.be.greaterThan(hostileNames.length * 5);
    for (const [what, { headers, body }] of json) {
      if (headers.get("content-type") === "application/jsonl") continue;
      expect(body, what).to.match(printable);
      expect(() => JSON.parse(body), what).to.not.throw();
      expect(headers.get("x-content-type-options"), what).to.equal("nosniff");
    }
  });

  it("are text in the report as a page, which runs and loads nothing [S67]", () => {
    for (const { headers, body } of shown(/\?format=html/)) {
      expect(body).to.not.match(unseen);
      expect((body.match(/<[^>]*>/g) ?? []).filter((tag) => !harmlessTag.test(tag))).to.deep.equal([]);
      expect(headers.get("content-security-policy")).to.match(/^default-src 'none'; .*frame-ancestors 'none'$/);
      expect(headers.get("x-content-type-options")).to.equal("nosniff");
    }
  });

  it("are text in the report as Markdown [S67]", () => {
    for (const { body } of shown(/\?format=md/)) {
      expect(body).to.not.match(unseen);
      expect(body.replace(/\\[!-~]/g, "")).to.not.match(/[<[\]]|javascript:[^\\]/);
      expect(
        body
          .split("\n")
          .filter(
            (line) =>
              /^\s*(?:#|=|-{3}|>)/.test(line) && !/^#{1,3} (?:Session|Actions|Policies|What|\d+\\?\.) ?/.test(line),
          ),
      ).to.deep.equal([]);
    }
  });

  it("are one line of printable JSON in the log, and one line of what is seen at a terminal [S67]", () => {
    for (const line of logs) {
      expect(line).to.match(printable);
      expect(JSON.parse(line)).to.include.keys("level", "time", "msg");
      expect(terminalLine(line).slice(0, -1)).to.not.match(/\n/).and.not.match(unseen);
    }
  });

  it("are printable ASCII in each frame of /v1/ws and each notice of a webhook [S67]", () => {
    const notices = receiver.deliveries.map(({ body }) => body);
    expect(notices.length).to.be.greaterThan(hostileNames.length);
    for (const text of [...frames, ...notices]) {
      expect(text).to.match(printable).and.not.include("\n");
      expect(() => JSON.parse(text)).to.not.throw();
    }
  });

  it("are not in metrics, whose labels nobody chooses [S67]", () => {
    const { body } = answers.get("/metrics") as WireResponse;
    expect(missing(body)).to.have.length(hostileNames.length);
    expect(body).to.match(printable).and.not.include("forged");
  });

  it("move, colour and turn nothing at a terminal, and are printable ASCII in `--json` [S67]", () => {
    for (const [line, text] of printed) {
      expect(text, line).to.not.match(unseen);
      if (line.endsWith("--json")) expect(text, line).to.match(printable);
    }
  });
});
