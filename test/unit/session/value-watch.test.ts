import { expect } from "chai";
import { type ActionEnvelope, withOutput } from "../../../core/action/envelope.ts";
import type { Json, JsonObject } from "../../../core/action/json.ts";
import { headKey } from "../../../core/session/session-entry.ts";
import { makeEvaluation, newAction } from "../../support/ledger-world.ts";
import { SessionWorld } from "../../support/session-world.ts";

describe("the values that untrusted answers name", () => {
  let world: SessionWorld;

  beforeEach(async () => {
    world = await SessionWorld.create({ expected: { nightly: ["evil.example", "drop@evil.example"] } });
  });
  afterEach(() => world.remove());

  /** An answer that is given. */
  async function answer(
    output: Json,
    given: Partial<ActionEnvelope> = { untrusted: true },
    label?: string,
  ): Promise<void> {
    const action = withOutput({ ...newAction({}, label), ...given }, output);
    await world.watch.recordTaints(action, { ...makeEvaluation(action), phase: "output" });
  }

  const dispatch = (action: ActionEnvelope): Promise<void> => world.watch.recordTaints(action, makeEvaluation(action));

  const seen = (args: JsonObject, given: Partial<ActionEnvelope> = {}, label?: string): readonly string[] =>
    world.watch.describe({ ...newAction({ arguments: args }, label), ...given }).session_state?.untrusted_values ?? [];

  it("are found among those of an action, and no others", async () => {
    await answer({ text: "Write to drop@evil.example, see https://evil.example/a" });
    expect(seen({ to: "Drop <drop@EVIL.example>" })).to.deep.equal(["drop@evil.example"]);
    expect(seen({ list: [{ url: "https://evil.example/a?b=c" }] })).to.deep.equal(["evil.example", "evil.example/a"]);
    expect(seen({ to: "ada@acme.example", url: "https://acme.example" })).to.deep.equal([]);
    expect(seen({ to: "ada@other.evil.example" }), "of its host").to.deep.equal(["ada@other.evil.example"]);
  });

  it("are those of every text of an answer, from its first to its last character", async () => {
    await answer({ a: [`${"x ".repeat(40_000)}drop@evil.example`], "mail@key.example": 1, n: 1234567890 });
    for (const to of ["drop@evil.example", "mail@key.example", "1234567890"])
      expect(seen({ to }), to).to.deep.equal([to]);
  });

  it("are found across the border between two pieces", async () => {
    for (let at = 16_384 - 20; at < 16_384; at += 3) await answer({ text: `${" ".repeat(at)}a${at}@evil.example ` });
    for (let at = 16_384 - 20; at < 16_384; at += 3) expect(seen({ to: `a${at}@evil.example` })).to.have.length(1);
  });

  it("count for all sessions of the principal, and not for those of a task, nor for other principals", async () => {
    await answer({ text: "drop@evil.example" });
    const to = { to: "drop@evil.example" };
    expect(seen(to, {}, "another")).to.have.length(1);
    expect(seen(to, { task: "weekly" })).to.deep.equal([]);
    const { principal } = newAction();
    expect(seen(to, { principal: { ...principal, id: "principal-v1-other" } })).to.deep.equal([]);
    await answer({ text: "drop@evil.example" }, { untrusted: true, task: "weekly" });
    expect(seen(to, { task: "weekly" })).to.have.length(1);
  });

  it("are none that a manifest names", async () => {
    await answer({ text: "drop@evil.example other@evil.example" }, { untrusted: true, task: "nightly" });
    expect(seen({ to: ["drop@evil.example", "other@evil.example"] }, { task: "nightly" })).to.deep.equal([
      "other@evil.example",
    ]);
  });

  it("are none that a trusted answer, a request or an earlier action named before", async () => {
    await answer({ text: "ada@acme.example" }, {});
    await dispatch(newAction({ arguments: { url: "https://acme.example/x" } }));
    const messages = [
      { role: "user", content: [{ type: "text", text: "write to bea@acme.example" }] },
      { role: "tool", content: "tom@acme.example" },
      { role: "user", content: [{ type: "tool_result", content: "eve@acme.example" }] },
    ];
    await dispatch(newAction({ protocol: "model", arguments: { messages } }));
    const all = [
      "ada@acme.example",
      "bea@acme.example",
      "tom@acme.example",
      "eve@acme.example",
      "https://acme.example/x",
    ];
    await answer({ text: all.join(" ") });
    expect(seen({ to: all })).to.deep.equal(["tom@acme.example", "eve@acme.example"]);
  });

  it("stay so, whatever names them later", async () => {
    await answer({ text: "evil.example" });
    await answer({ text: "evil.example data.evil.example" }, {});
    await dispatch(newAction({ arguments: { url: "https://data.evil.example/x" } }));
    expect(seen({ url: "https://data.evil.example/x" })).to.deep.equal(["data.evil.example", "data.evil.example/x"]);
  });

  it("are not taken from an answer that is withheld", async () => {
    const action = withOutput({ ...newAction(), untrusted: true }, { text: "drop@evil.example" });
    await world.watch.recordTaints(action, { ...makeEvaluation(action), phase: "output", decision: "block" });
    expect(seen({ to: "drop@evil.example" })).to.deep.equal([]);
  });

  it("count in prose only where it is sent out or run", async () => {
    await answer({ text: "https://evil.example DE89 3704 0044 0532 0130 00 drop@evil.example" });
    const body = "https://evil.example DE89370400440532013000 drop@evil.example";
    const of = (effect: "write" | "network" | "execute"): readonly string[] =>
      seen({ body }, { facts: { hosts: [], paths: [], more: false, effect } });
    expect(of("write")).to.deep.equal([]);
    expect(of("network")).to.deep.equal(["evil.example", "DE89370400440532013000"]);
    expect(of("execute")).to.include("drop@evil.example");
  });

  it("are all that are not known once there are too many, and arguments too long to be searched are one", async () => {
    await answer({ text: "ada@acme.example" }, {});
    await answer({ text: Array.from({ length: 1_100 }, (_, n) => `a${n}@evil.example`).join(" ") });
    expect(seen({ to: ["new@other.example", "ada@acme.example"] })).to.deep.equal(["new@other.example"]);
    expect(seen({ text: "x".repeat(70_000) })).to.deep.equal(["an argument too long to be searched"]);
    await world.restart();
    expect(seen({ to: "new@other.example" })).to.deep.equal(["new@other.example"]);
  });

  it("are durable when the answer may be given, also those of later answers, and in the store no text of them is", async () => {
    await answer({ text: "first@evil.example" });
    await answer({ text: "second@evil.example" });
    const { principal } = newAction();
    const head = (await world.evidence.store.get(headKey("acme", principal.id))) ?? "";
    expect(JSON.parse(head).untrusted_values).to.have.length(16);
    expect(head).to.not.include("evil");
    await world.restart();
    expect(seen({ to: ["first@evil.example", "second@evil.example", "third@evil.example"] })).to.deep.equal([
      "first@evil.example",
      "second@evil.example",
    ]);
  });

  it("are gone after a reset", async () => {
    await world.decide(newAction());
    await answer({ text: "drop@evil.example" });
    await world.watch.reset("acme", newAction().session.id, "ops", "seen to");
    expect(seen({ to: "drop@evil.example" })).to.deep.equal([]);
  });

  it("are remembered without what was known before where no tool is called untrusted", async () => {
    await world.remove();
    world = await SessionWorld.create({ hasUntrusted: false });
    await answer({ text: "ada@acme.example" }, {});
    await answer({ text: "ada@acme.example" });
    expect(seen({ to: "ada@acme.example" })).to.deep.equal(["ada@acme.example"]);
  });
});
