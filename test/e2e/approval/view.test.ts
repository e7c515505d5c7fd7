import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { hostileArguments, ReviewWorld, recordsIn } from "../../support/review-world.ts";
import { runGateway } from "../../unit/cli/run.ts";

describe("GET /admin/v1/approvals/{id}", () => {
  let folder: string;
  let world: ReviewWorld;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "approval-view-"));
    world = await ReviewWorld.start("", folder);
  });
  after(async () => {
    await world.stop();
    await rm(folder, { recursive: true });
  });

  it("shows a reviewer who asks for what, why it waits, and what the session did before", async () => {
    const args = { path: "/etc/hosts" };
    const id = await world.hold(args);
    const { status, body } = await world.as("rita").show(id);
    expect(status).to.equal(200);
    expect(body.approval).to.deep.include({ id, state: "pending", required: 1 });
    expect(body.approval.principal).to.deep.equal({ id: world.principal("agent"), key_id: "agent", role: "operator" });
    expect(body.held?.action).to.deep.include({ tool: "echo", target: "recorder", arguments: args });
    expect(body.held?.rules).to.deep.equal([
      { rule: "open.review", severity: "high", message: "somebody has to look at it" },
    ]);
    expect([body.withheld, body.changes, body.risk]).to.deep.equal([null, null, 50]);
    expect(body.session?.id).to.equal(body.approval.session.id);
    expect(body.recent.at(-1)).to.deep.include({
      tool: "echo",
      decision: "review",
      rules: ["open.review"],
      effect: "not_dispatched",
      approval: { id, state: "pending" },
    });
  });

  it("says how the arguments differ from those that ran last, and what came of them", async () => {
    const before = { to: "a@example.org", amount: 10, note: "x" };
    const first = await world.hold(before);
    await world.as("rita").approve(first);
    await world.call("echo", before);
    const id = await world.hold({ to: "b@example.org", amount: 10, extra: [1] });
    const { body } = await world.as("rita").show(id);
    expect(body.changes).to.deep.equal({
      since: first,
      items: [
        { pointer: "/extra", kind: "added", after: [1] },
        { pointer: "/note", kind: "removed", before: "x" },
        { pointer: "/to", kind: "changed", before: "a@example.org", after: "b@example.org" },
      ],
      omitted: 0,
    });
    expect(body.recent.map(({ approval, effect }) => [approval?.id, approval?.state, effect])).to.deep.include([
      first,
      "consumed",
      "success",
    ]);
    expect(body.recent.length).to.be.at.most(10);
  });

  it("keeps arguments from who may not review, and says why [R5-10]", async () => {
    const id = await world.hold({ secret: "sentinel-of-the-view" });
    const { status, text, body } = await world.as("vera").show(id);
    expect([status, body.held, body.changes, body.withheld]).to.deep.equal([200, null, null, "role"]);
    expect(text).to.not.include("sentinel-of-the-view");
    const listed = [await world.as("rita").list("?limit=500"), await world.as("rita").history("?limit=500")];
    for (const { text: list } of listed) expect(list).to.not.include("sentinel-of-the-view");
    await world.as("rita").deny(id);
    const { body: over } = await world.as("rita").show(id);
    expect([over.held, over.withheld, over.approval.state]).to.deep.equal([null, "over", "denied"]);
  });

  it("answers hostile arguments whole, in printable ASCII alone, and runs exactly those [S51]", async () => {
    const id = await world.hold(hostileArguments);
    const reviewer = world.as("rita");
    for (const { text } of [await reviewer.list("?limit=500"), await reviewer.show(id)])
      expect(text).to.match(/^[ -~]*$/);
    expect((await reviewer.show(id)).body.held?.action.arguments).to.deep.equal(hostileArguments);
    await reviewer.approve(id, { comment: "bidi \u202e and a line\nbreak" });
    expect((await reviewer.show(id)).text).to.match(/^[ -~]*$/);
    const ran = (await world.upstream.calls()).length;
    await world.call("echo", hostileArguments);
    const [call] = (await world.upstream.calls()).slice(ran);
    expect(JSON.parse(call?.body ?? "{}").params.arguments).to.deep.equal(hostileArguments);
  });

  it("tells in GraphQL what waits and nothing of its arguments, so that nothing of them is cut [S51]", async () => {
    const id = await world.hold({ ...hostileArguments, of: "sentinel-of-graphql" });
    const fields = "id state comment reason action { tool target capability protocol } evaluation { risk rules }";
    const query = `{ approval(id: "${id}") { ${fields} } approvals(limit: 500) { items { ${fields} } } }`;
    const { status, text } = await world.as("rita").ask("POST", "/graphql", { query });
    expect([status, text.split(id).length - 1]).to.deep.equal([200, 2]);
    expect(text)
      .to.match(/^[ -~]*$/)
      .and.not.include("sentinel-of-graphql")
      .and.not.include("ypal.com");
    await world.as("rita").deny(id);
  });

  describe("after a stop in which a field of a held call was erased", () => {
    const args = { text: "erased before anybody looked" };
    let looked: string;
    let erased: string;
    let records: Awaited<ReturnType<typeof recordsIn>>;

    before(async () => {
      looked = await world.hold({ text: "who looked" });
      for (const person of ["vera", "foreign", "olaf"] as const) await world.as(person).show(looked);
      erased = await world.hold(args);
      const { approval } = (await world.as("rita").show(erased)).body;
      await world.gateway.stop();
      const data = join(folder, "data");
      records = await recordsIn(data);
      const erase = ["evidence", "erase", "--data", data, "--tenant", "acme", "--seq", String(approval.held_seq)];
      const { code, stderr } = await runGateway([...erase, "--field", "*", "--reason", "asked"]);
      expect(code, stderr).to.equal(0);
      await world.startAgain();
    });

    it("has put on record who was shown arguments", () => {
      const shown = records.filter(({ detail }) => detail?.approval === looked);
      expect(shown.map(({ kind, detail }) => [kind, detail])).to.deep.equal([
        ["admin", { action: "approval.disclose", approval: looked, principal: world.principal("olaf") }],
      ]);
    });

    it("refuses a yes to what is not kept whole any more [S51]", async () => {
      const { body } = await world.as("rita").show(erased);
      expect([body.held, body.withheld]).to.deep.equal([null, "incomplete"]);
      const answer = await world.as("rita").approve(erased);
      expect([answer.status, answer.body.code]).to.deep.equal([409, "APPROVAL_INCOMPLETE"]);
      const ran = await world.ran();
      await world.call("echo", args);
      expect(await world.ran()).to.equal(ran);
      expect((await world.as("rita").deny(erased)).status).to.equal(200);
    });
  });
});
