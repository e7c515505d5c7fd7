import { type ChildProcess, spawn } from "node:child_process";
import { createHmac, randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { generateKey } from "../../core/identity/key-ring.ts";
import { repositoryRoot } from "../check/source-tree.ts";
import { Agent } from "../support/agent.ts";
import { type RunningGateway, startGateway } from "../support/gateway.ts";
import { until } from "../support/webhook-receiver.ts";

const script = join(repositoryRoot, "core/cli/deploy/relay/relay.mjs");
const demoServer = fileURLToPath(new URL("../../core/upstream/demo/server.js", import.meta.url));
const secret = `whsec_${randomBytes(24).toString("base64")}`;
const keys = { agent: generateKey(randomBytes), operator: generateKey(randomBytes) };
type Kind = "slack" | "teams" | "mail";
const kinds: readonly Kind[] = ["slack", "teams", "mail"];

/** Names that are markup somewhere, a header in a mail, or not what they seem. */
const hostileTool = "<!channel> [free](https://evil.example)\nBcc: all@example.com \u202eevil";

describe("relay.mjs", function () {
  this.timeout(60_000);
  let folder: string;
  let chat: Server;
  const posted: Readonly<Record<string, unknown>>[] = [];
  let status = 200;
  const relays = new Map<Kind, { readonly url: string; readonly child: ChildProcess }>();
  let gateway: RunningGateway;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "relay-"));
    chat = createServer(async (request, response) => {
      const body = JSON.parse(await text(request)) as Readonly<Record<string, unknown>>;
      if (status === 200) posted.push({ ...body, path: request.url });
      response.statusCode = status;
      response.end("ok");
    });
    await new Promise<void>((resolve) => chat.listen(0, "127.0.0.1", resolve));
    await writeFile(join(folder, "sendmail"), `#!/bin/sh\ncat > "$(mktemp "${folder}/mail.XXXXXX")"\n`);
    await chmod(join(folder, "sendmail"), 0o755);
    for (const kind of kinds) relays.set(kind, await startRelay(kind));
    gateway = await startGateway({ config: config(), env: { SECRET: secret } });
  });

  after(async () => {
    await gateway?.stop();
    for (const { child } of relays.values()) if (child.kill()) await once(child, "exit");
    chat.close();
    await rm(folder, { recursive: true });
  });

  async function startRelay(kind: Kind): Promise<{ readonly url: string; readonly child: ChildProcess }> {
    const { port } = chat.address() as AddressInfo;
    const child = spawn(process.execPath, [script], {
      env: {
        PATH: process.env.PATH,
        WEBHOOK_SECRET: secret,
        RELAY_TO: kind,
        RELAY_URL: `http://127.0.0.1:${port}/${kind}`,
        MAIL_FROM: "gateway@example.com",
        MAIL_TO: "reviewers@example.com",
        SENDMAIL: join(folder, "sendmail"),
        PORT: "0",
      },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = (await once(child.stdout, "data")) as [Buffer];
    return { url: `http://127.0.0.1:${/(\d+)\n$/.exec(String(line))?.[1]}/`, child };
  }

  function config(): string {
    const hooks = kinds.map(
      (kind) => `    - { name: ${kind}, tenant: acme, url: "${relays.get(kind)?.url}", secrets_env: [SECRET] }`,
    );
    return `
listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }
data_dir: data
keys:
  - { id: agent, tenant: acme, role: viewer, key_hash: "${keys.agent.keyHash}" }
  - { id: operator, tenant: acme, role: operator, key_hash: "${keys.operator.keyHash}" }
upstreams:
  - name: demo
    transport: stdio
    command: ${process.execPath}
    args: ["${demoServer}"]
    capabilities: { write_note: write }
policy: { packs: [{ path: ${join(repositoryRoot, "policy-packs/baseline")} }] }
approvals:
  review_url: "https://review.example.com/approvals/{id}"
  webhooks:
${hooks.join("\n")}
`;
  }

  /** The mails that were handed over, decoded. */
  async function mails(): Promise<readonly { readonly head: string; readonly body: string }[]> {
    const files = (await readdir(folder)).filter((name) => name.startsWith("mail."));
    const texts = await Promise.all(files.map((name) => readFile(join(folder, name), "utf8")));
    return texts.flatMap((mail) => {
      const [head = "", ...body] = mail.split("\n\n");
      return body.length === 0 ? [] : [{ head, body: Buffer.from(body.join(""), "base64").toString() }];
    });
  }

  interface Notice {
    readonly id?: string;
    readonly key?: string;
    readonly atSeconds?: number;
    readonly tool?: string;
  }

  /** What the relay answers to a notice as the gateway signs it. */
  async function deliver(
    kind: Kind,
    { id = randomUUID(), key = secret, atSeconds, tool = "echo" }: Notice,
  ): Promise<number> {
    const time = Math.floor(atSeconds ?? Date.now() / 1_000);
    const data = {
      ...{ id: "apr_0", state: "pending", capability: "write", protocol: "mcp", target: "demo", tool },
      ...{ rules: ["a.b"], risk: 40, tainted: [], required: 1, endorsed: 0, expires_at: "2026-11-01T00:00:00.000Z" },
      review_url: "https://review.example.com/approvals/apr_0",
    };
    const body = JSON.stringify({ type: "approval.pending", timestamp: "2026-11-01T00:00:00.000Z", data });
    const signature = createHmac("sha256", Buffer.from(key.slice("whsec_".length), "base64"))
      .update(`${id}.${time}.${body}`)
      .digest("base64");
    const headers = { "webhook-id": id, "webhook-timestamp": String(time), "webhook-signature": `v1,${signature}` };
    return (await fetch(relays.get(kind)?.url ?? "", { method: "POST", headers, body })).status;
  }

  it("passes a held call on to each, with the link to its review page", async () => {
    const agent = new Agent(gateway.url, keys.agent.key);
    const held = await agent.call("write_note", { title: "plan", text: "a secret text" });
    await agent.hangUp();
    const id = /apr_[0-9a-f]{32}/.exec(held.result?.content?.[0]?.text ?? "")?.[0] ?? "";
    await until(async () => posted.length === 2 && (await mails()).length === 1, "three messages");
    const link = `https://review.example.com/approvals/${id}`;
    const slack = posted.find(({ path }) => path === "/slack");
    expect(slack?.text).to.equal("Approval pending: write_note");
    expect(JSON.stringify(slack?.blocks)).to.include(`<${link}|Review it>`).and.include("write write_note on demo");
    const teams = posted.find(({ path }) => path === "/teams") as unknown as TeamsMessage;
    const [card] = teams.attachments;
    expect(card.contentType).to.equal("application/vnd.microsoft.card.adaptive");
    expect(card.content.actions).to.deep.equal([{ type: "Action.OpenUrl", title: "Review it", url: link }]);
    const [mail] = await mails();
    expect(mail?.head).to.include("To: reviewers@example.com\n");
    expect(mail?.body).to.include("Action: write write_note on demo\n").and.include(`\n${link}\n`);
    expect(JSON.stringify([posted, await mails()])).to.not.include("a secret text");
  });

  interface TeamsMessage {
    readonly attachments: readonly [
      {
        readonly contentType: string;
        readonly content: { readonly actions: object; readonly body: readonly object[] };
      },
    ];
  }

  it("passes on nothing that the gateway did not sign, or signed long ago", async () => {
    const before = posted.length;
    const other = `whsec_${randomBytes(24).toString("base64")}`;
    expect(await deliver("slack", { key: other })).to.equal(401);
    const longAgo = await deliver("slack", { atSeconds: Date.now() / 1_000 - 301 });
    expect(longAgo).to.equal(401);
    expect((await fetch(relays.get("slack")?.url ?? "", { method: "POST", body: "{}" })).status).to.equal(401);
    expect(posted.length).to.equal(before);
  });

  it("passes a notice on once, and asks for it again where it could not", async () => {
    const before = posted.length;
    const id = randomUUID();
    status = 500;
    expect(await deliver("slack", { id })).to.equal(502);
    status = 200;
    expect([await deliver("slack", { id }), await deliver("slack", { id })]).to.deep.equal([204, 204]);
    expect(posted.length).to.equal(before + 1);
  });

  it("shows what others named as it is, and takes none of it for markup or a header", async () => {
    const known = new Set((await mails()).map(({ body }) => body));
    for (const kind of kinds) expect(await deliver(kind, { tool: hostileTool })).to.equal(204);
    const slack = posted.findLast(({ path }) => path === "/slack") as { text: string; blocks: readonly BlockOfSlack[] };
    expect(slack.text).to.include("&lt;!channel&gt;").and.include("\\u{202e}").and.not.include("<");
    for (const { type, text, fields = [] } of slack.blocks.slice(0, 2)) {
      for (const each of type === "header" ? [text] : fields) expect(each?.type).to.equal("plain_text");
    }
    const teams = posted.findLast(({ path }) => path === "/teams") as unknown as TeamsMessage;
    for (const block of teams.attachments[0].content.body) expect(block).to.include({ type: "RichTextBlock" });
    const mail = (await mails()).find(({ body }) => !known.has(body));
    expect(mail?.head).to.not.match(/^bcc:/im);
    expect(mail?.body).to.include("\\u{a}Bcc: all@example.com \\u{202e}evil on demo\n");
  });

  interface BlockOfSlack {
    readonly type: string;
    readonly text?: { readonly type: string };
    readonly fields?: readonly { readonly type: string }[];
  }
});
