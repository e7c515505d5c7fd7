import { execFile } from "node:child_process";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { evidenceRules } from "../../../core/compose/evidence-rules.ts";
import { readBundle } from "../../../core/evidence/bundle/bundle-line.ts";
import { verifyBundle } from "../../../core/evidence/bundle/verify.ts";
import type { EventRecord } from "../../../core/evidence/record/record.ts";
import { repositoryRoot } from "../../check/source-tree.ts";
import { clientKinds } from "../../support/mcp-client.ts";
import { scrape } from "../../support/scrape.ts";
import { TicketWorld, textOf } from "../../support/ticket-world.ts";
import { send } from "../../support/wire.ts";

const verifier = join(repositoryRoot, "sdk", "evidence", "verify.py");

describe("a capability ticket", () => {
  let world: TicketWorld;

  before(async () => {
    world = await TicketWorld.start();
  });

  after(() => world.stop());

  it("lets its principal do as often as it says what needs one, and no more [R2.6-1]", async () => {
    expect(await world.refusal(null)).to.equal("none was presented");
    const { token, ticket } = await world.issue({ max_uses: 3 });
    expect(ticket).to.include({ state: "live", uses: 0, max_uses: 3, session: null });
    const before = await world.ran();
    for (let use = 1; use <= 3; use++) expect((await world.call(token, { use })).isError).to.not.equal(true);
    expect(await world.ran()).to.equal(before + 3);
    expect(await world.refusal(token, { use: 4 })).to.equal("used_up");
    const [listed] = (await world.list()).filter(({ id }) => id === ticket.id);
    expect(listed).to.include({ state: "used_up", uses: 3 });
    expect((await world.recorded()).filter(({ id }) => id === ticket.id)).to.deep.equal([
      { id: ticket.id, of: 3, standing: "valid", use: 1 },
      { id: ticket.id, of: 3, standing: "valid", use: 2 },
      { id: ticket.id, of: 3, standing: "valid", use: 3 },
      { id: ticket.id, standing: "used_up" },
    ]);
    expect(await world.evidence.verify()).to.include({ ok: true });
  });

  it("is counted as it is issued, used, refused and revoked, each once", async () => {
    const count = async (): Promise<readonly number[]> => {
      const series = await scrape(world.gateway.metricsUrl);
      const events = ["issued", "used", "refused", "revoked", "expired"];
      return events.map((event) => series.get(`gateway_tickets_total{event="${event}"}`) ?? Number.NaN);
    };
    const before = await count();
    const { token } = await world.issue({ max_uses: 2 });
    for (let use = 0; use < 2; use++) await world.call(token);
    await world.refusal(token);
    const other = await world.issue();
    await world.ask("rita", "DELETE", `tickets/${other.ticket.id}`, { reason: "enough" });
    await world.refusal(other.token);
    const after = await count();
    expect(after.map((each, at) => each - (before[at] ?? 0))).to.deep.equal([2, 2, 2, 1, 0]);
  });

  it("leaves a session's bundle that both verifiers hold to its uses", async () => {
    const { token, ticket } = await world.issue({ max_uses: 3 });
    for (let use = 0; use < 2; use++) await world.call(token, {}, { label: "bundled" });
    await world.ask("rita", "DELETE", `tickets/${ticket.id}`, { reason: "enough" });
    await world.call(token, {}, { label: "bundled" });
    const { id = "" } = (await world.evidence.sessions()).find(({ label }) => label === "bundled") ?? {};
    const url = `${world.gateway.adminUrl}/admin/v1/evidence/sessions/${id}/export`;
    const answer = await fetch(url, { headers: { "x-api-key": world.key("rita") } });
    const bundle = Buffer.from(await answer.arrayBuffer());
    expect(verifyBundle(bundle, { keys: [], rules: evidenceRules, nowMs: Date.now() })).to.include({
      verdict: "self-attested",
      first_bad: null,
    });
    const file = join(world.gateway.folder, "bundle");
    await writeFile(file, bundle);
    const { stdout } = await promisify(execFile)("python3", [verifier, file]).catch(
      (error: { stdout: string }) => error,
    );
    expect(JSON.parse(stdout)).to.include({ verdict: "self-attested", first_bad: null });
    const events = readBundle(bundle).entries.filter(({ record }) => record.kind === "ticket");
    expect(events.map(({ record }) => (record as EventRecord).detail.event)).to.deep.equal(["revoked"]);
  });

  for (const kind of clientKinds) {
    for (const place of ["header", "meta"] as const) {
      it(`is presented by a client of kind ${kind} in its ${place}`, async () => {
        const { token } = await world.issue();
        const before = await world.ran();
        expect((await world.call(token, { kind, place }, { kind, in: place })).isError).to.not.equal(true);
        expect(await world.ran()).to.equal(before + 1);
        expect(await world.refusal(token, { kind, place }, { kind, in: place })).to.be.oneOf(["used_up", "replayed"]);
      });
    }
  }

  it("is presented once in a request", async () => {
    const { token } = await world.issue();
    const before = await world.ran();
    const client = await world.connect(token);
    const twice = client.callTool("echo", {}, { meta: { "io.agent-governance-gateway/ticket": token } });
    expect(await twice.catch((error: Error) => error.message)).to.match(
      /expected one ticket, in `x-gateway-ticket` or/,
    );
    await client.close();
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "echo" } });
    const headers: [string, string][] = [
      ["content-type", "application/json"],
      ["x-api-key", world.key("agent")],
      ["x-gateway-ticket", token],
      ["X-Gateway-Ticket", token],
    ];
    const { status, body: answer } = await send(world.gateway.url, { method: "POST", target: "/mcp", headers, body });
    expect(status).to.equal(400);
    expect(answer).to.match(/expected one `x-gateway-ticket`, got more/);
    expect(await world.ran()).to.equal(before);
  });

  it("is not spent where no rule asks for one, where another rule blocks, and by what it is not presented with", async () => {
    const { token, ticket } = await world.issue();
    await world.call(token, { free: true });
    expect(textOf(await world.call(token, { never: true }))).to.match(/nobody may do that \(rule open\.never\)/);
    await (await world.connect(token)).listTools();
    expect((await world.list()).find(({ id }) => id === ticket.id)).to.include({ uses: 0, session: null });
    expect((await world.call(token)).isError).to.not.equal(true);
  });

  it("lifts a review that asks for one, so that nobody is asked", async () => {
    const { token } = await world.issue();
    expect((await world.call(token, { review: 1 })).isError).to.not.equal(true);
    const held = textOf(await world.call(null, { review: 2 }));
    expect(held).to.match(
      /^Held for review: somebody has to look at it \(needs a capability ticket: none was presented\)/,
    );
    const { body } = await world.ask<{ items: readonly unknown[] }>("adam", "GET", "approvals");
    expect(body.items).to.have.length(1);
  });

  it("goes no further than the gateway: not to the upstream, the log, the evidence, any other file", async () => {
    const { token } = await world.issue({ max_uses: 2 });
    await world.call(token, {}, { label: "kept" });
    await world.call(token, {}, { label: "kept", in: "meta" });
    const [, payload = "", signature = ""] = token.split(".");
    const seen = [
      JSON.stringify(await world.upstream.requests()),
      world.gateway.stdout(),
      world.gateway.stderr(),
      JSON.stringify(await world.evidence.recordsOf()),
      (await world.ask("rita", "GET", "tickets")).text,
      ...(await filesBelow(world.gateway.folder)),
    ];
    for (const text of seen) {
      expect(text.includes(payload) || text.includes(signature)).to.equal(false);
      expect(text.includes(signature.slice(0, 40))).to.equal(false);
    }
  });
});

async function filesBelow(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return Promise.all(files.map((file) => readFile(join(file.parentPath, file.name), "latin1")));
}
