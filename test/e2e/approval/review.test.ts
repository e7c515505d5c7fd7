import { expect } from "chai";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { Reviewer, ReviewWorld } from "../../support/review-world.ts";

const unknownId = `apr_${"0".repeat(32)}`;

describe("review over the admin port", () => {
  let world: ReviewWorld;
  let text = 0;
  before(async () => {
    world = await ReviewWorld.start();
  });
  after(() => world.stop());

  /** Arguments that nobody used before. */
  function fresh(): { text: string } {
    text += 1;
    return { text: `text ${text}` };
  }

  it("lists what waits, takes a yes, and the same call runs once [R1.1-19, R1.2-7, R3.1-1, R3.1-2, R3.1-4, R5-9]", async () => {
    const args = fresh();
    const id = await world.hold(args);
    const ran = await world.ran();
    const { body: listed } = await world.as("vera").list();
    expect(listed.items.map((each) => [each.id, each.state])).to.deep.include([id, "pending"]);
    const { status, body } = await world.as("rita").approve(id, { comment: "fine" });
    expect([status, body.approval.state, body.approval.reviewer]).to.deep.equal([
      200,
      "approved",
      world.principal("rita"),
    ]);
    expect((await world.as("vera").list("?state=approved")).body.items.map((each) => each.id)).to.include(id);
    expect(await world.ran()).to.equal(ran);
    expect((await world.call("echo", args)).result?.isError).to.not.equal(true);
    expect(await world.ran()).to.equal(ran + 1);
    expect(await world.hold(args)).to.not.equal(id);
    expect(await world.ran()).to.equal(ran + 1);
    const { body: past } = await world.as("vera").history("?state=consumed&limit=1");
    expect(past.items[0]).to.include({ id, state: "consumed", comment: "fine" });
  });

  it("takes a no, and the call does not run [R3.1-3, R5-9]", async () => {
    const args = fresh();
    const id = await world.hold(args);
    const ran = await world.ran();
    const { status, body } = await world.as("adam").deny(id, { comment: "no" });
    expect([status, body.approval.state, body.approval.reviewer]).to.deep.equal([
      200,
      "denied",
      world.principal("adam"),
    ]);
    expect((await world.call("echo", args)).result?.isError).to.equal(true);
    expect(await world.ran()).to.equal(ran);
    expect((await world.as("vera").history("?state=denied")).body.items.map((each) => each.id)).to.include(id);
  });

  it("lets one of 64 answers at once count, and the upstream agrees [S52]", async () => {
    for (let round = 0; round < 4; round += 1) {
      const args = fresh();
      const id = await world.hold(args);
      const before = await world.ran();
      const people = [world.as("rita"), world.as("olaf"), world.as("adam")] as const;
      const answers = await Promise.all(
        Array.from({ length: 64 }, (_, index) => {
          const person = people[index % people.length] as Reviewer;
          return index % 2 === 0 ? person.approve(id) : person.deny(id);
        }),
      );
      const won = answers.filter(({ status }) => status === 200);
      expect(won.length).to.equal(1);
      for (const lost of answers) if (!won.includes(lost)) expect(lost.status).to.equal(409);
      const state = won[0]?.body.approval.state;
      await world.call("echo", args);
      expect((await world.ran()) - before).to.equal(state === "approved" ? 1 : 0);
    }
  });

  it("answers 409 with the state to whoever comes after the end [S52]", async () => {
    const args = fresh();
    const approved = await world.hold(args);
    await world.as("rita").approve(approved);
    await expectState(approved, "approved");
    await world.call("echo", args);
    await expectState(approved, "consumed");
    const denied = await world.hold(fresh());
    await world.as("rita").deny(denied);
    await expectState(denied, "denied");
  });

  async function expectState(id: string, state: string): Promise<void> {
    for (const answer of [world.as("olaf").approve(id), world.as("adam").deny(id), world.as("rita").approve(id)]) {
      const { status, body } = await answer;
      expect([status, body.code, body.data]).to.deep.equal([409, "APPROVAL_STATE", { id, state }]);
    }
  }

  it("wants two people where a rule does, and not the same twice [S52, R5-9]", async () => {
    const args = fresh();
    const id = await world.hold(args, "deep");
    const ran = await world.ran();
    expect((await world.as("rita").approve(id)).body.approval.state).to.equal("pending");
    const again = await world.as("rita").approve(id);
    expect([again.status, again.body.code]).to.deep.equal([409, "APPROVAL_ENDORSED"]);
    expect((await world.call("deep", args)).result?.isError).to.equal(true);
    expect(await world.ran()).to.equal(ran);
    expect((await world.as("olaf").approve(id)).body.approval.state).to.equal("approved");
    await world.call("deep", args);
    expect(await world.ran()).to.equal(ran + 1);
  });

  it("takes the reviewer from the key, whatever a body says, and never from the one who asked [R3.2-3]", async () => {
    const args = fresh();
    const id = await world.hold(args);
    const ran = await world.ran();
    for (const reviewer of [world.principal("rita"), { id: world.principal("rita") }, null]) {
      const own = await world.as("agent").approve(id, { reviewer });
      expect([own.status, own.body.code]).to.deep.equal([403, "APPROVAL_SELF_REVIEW"]);
    }
    const viewer = await world.as("vera").approve(id, { reviewer: world.principal("rita") });
    expect(viewer.status).to.equal(403);
    await world.call("echo", args);
    expect(await world.ran()).to.equal(ran);
    const { body } = await world.as("rita").approve(id, { reviewer: world.principal("adam") });
    expect(body.approval.reviewer).to.equal(world.principal("rita"));
  });

  it("approves any values for one use where the answer says so [R3.2-8]", async () => {
    const id = await world.hold(fresh());
    const ran = await world.ran();
    const { body } = await world.as("rita").approve(id, { scope: "task" });
    expect(body.approval.scope).to.equal("task");
    await world.call("echo", fresh());
    expect(await world.ran()).to.equal(ran + 1);
    await world.call("echo", fresh());
    expect(await world.ran()).to.equal(ran + 1);
  });

  it("says the same of a foreign approval as of none, and changes nothing [R3.2-2, R4.2-11]", async () => {
    const id = await world.hold(fresh());
    const foreign = world.as("foreign");
    for (const each of [id, unknownId, "history2", "apr_x"]) {
      for (const answer of [foreign.show(each), foreign.approve(each), foreign.deny(each)]) {
        const { status, body } = await answer;
        expect([status, body.code, body.detail]).to.deep.equal([404, "NOT_FOUND", "not found: no such approval"]);
      }
    }
    expect((await foreign.list()).body.items).to.deep.equal([]);
    expect((await foreign.history()).body.items).to.deep.equal([]);
    expect((await world.as("rita").show(id)).body.approval.state).to.equal("pending");
  });

  it("lets nobody review without a key, with a viewer's, or over the gateway port [R1.2-7, R3.2-1, R4.2-9, R5-10]", async () => {
    const id = await world.hold(fresh());
    const nobody = new Reviewer(world.gateway.adminUrl, undefined);
    for (const answer of [nobody.list(), nobody.history(), nobody.show(id), nobody.approve(id), nobody.deny(id)]) {
      expect((await answer).status).to.equal(401);
    }
    for (const answer of [world.as("vera").approve(id), world.as("vera").deny(id)]) {
      expect((await answer).status).to.equal(403);
    }
    const elsewhere = new Reviewer(world.gateway.url, world.key("rita"));
    for (const answer of [elsewhere.list(), elsewhere.show(id), elsewhere.approve(id), elsewhere.deny(id)]) {
      expect((await answer).status).to.equal(404);
    }
    expect((await world.as("rita").show(id)).body.approval.state).to.equal("pending");
  });

  const badBodies: readonly [string, string, RegExp][] = [
    [
      "an unknown member",
      '{"coment":"x"}',
      /expected only `comment`, .* in the body, got `coment`; did you mean `comment`/,
    ],
    [
      "a comment too long",
      `{"comment":"${"x".repeat(1_001)}"}`,
      /`comment` to be a text of at most 1000 characters, got 1001 characters/,
    ],
    ["a comment that is none", '{"comment":{}}', /`comment` to be a text of at most 1000 characters, got an object/],
    ["an unknown scope", '{"scope":"all"}', /`scope` to be `exact`: .*, got `all`/],
    ["a reason too short", '{"break_glass":"now"}', /`break_glass` to be 10 to 1000 characters: .*, got `now`/],
    ["a blank reason", `{"break_glass":"${" ".repeat(20)}"}`, /`break_glass` to be 10 to 1000 characters/],
    ["a list", "[]", /expected the body to be an object, got an array/],
    ["a member twice", '{"comment":"a","comment":"b"}', /duplicate/],
    ["half a character", '{"comment":"\\ud800"}', /surrogate/],
    ["a prototype", '{"__proto__":"x"}', /got `__proto__`/],
  ];
  for (const [what, body, expected] of badBodies) {
    it(`refuses ${what}, and changes nothing`, async () => {
      const id = await world.hold(fresh());
      const answer = await world.as("rita").ask<{ detail: string }>("POST", `/approvals/${id}/approve`, body);
      expect(answer.status).to.equal(400);
      expect(answer.body.detail).to.match(expected);
      expect((await world.as("rita").show(id)).body.approval.state).to.equal("pending");
    });
  }

  it("refuses a body of more than 64 KiB, or of another type", async () => {
    const id = await world.hold(fresh());
    const large = await world.as("rita").approve(id, { reviewer: "x".repeat(65_536) });
    expect(large.status).to.equal(413);
    const form = await fetch(`${world.gateway.adminUrl}/admin/v1/approvals/${id}/approve`, {
      method: "POST",
      headers: { "x-api-key": world.key("rita"), "content-type": "application/x-www-form-urlencoded" },
      body: "scope=task",
    });
    expect(form.status).to.equal(415);
    expect((await world.as("rita").show(id)).body.approval.state).to.equal("pending");
  });

  it("refuses break-glass where the configuration does not permit it [R5-18]", async () => {
    const args = fresh();
    const id = await world.hold(args);
    const ran = await world.ran();
    const { status, body } = await world.as("adam").approve(id, { break_glass: "production is down" });
    expect([status, body.code]).to.deep.equal([403, "BREAK_GLASS_FORBIDDEN"]);
    await world.call("echo", args);
    expect(await world.ran()).to.equal(ran);
  });

  it("pages through what waits and what is over, each once [S57]", async () => {
    const held = new Set<string>();
    for (let index = 0; index < 7; index += 1) held.add(await world.hold(fresh()));
    const listed = await readAll((query) => world.as("vera").list(query));
    expect(new Set(listed).size).to.equal(listed.length);
    expect(listed).to.include.members([...held]);
    for (const id of held) await world.as("rita").deny(id);
    const past = await readAll((query) => world.as("vera").history(query));
    expect(new Set(past).size).to.equal(past.length);
    expect(past.slice(0, 7)).to.deep.equal([...held].reverse());
    for (const query of ["?state=all", "?limit=0", "?cursor=x", "?status=pending", "?state=denied"]) {
      expect((await world.as("vera").list(query)).status, query).to.equal(400);
    }
  });

  async function readAll(read: (query: string) => ReturnType<Reviewer["list"]>): Promise<readonly string[]> {
    const ids: string[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const { body } = await read(`?limit=3${cursor === "" ? "" : `&cursor=${cursor}`}`);
      ids.push(...body.items.map(({ id }) => id));
      cursor = body.next;
    }
    return ids;
  }

  it("leaves a chain that verifies", async () => {
    expect(await new EvidenceReader(world.gateway.adminUrl, world.key("adam")).verify()).to.include({ ok: true });
  });
});
