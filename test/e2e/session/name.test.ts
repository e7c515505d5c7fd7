import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import type { JsonObject } from "../../../core/action/json.ts";
import { runCommand } from "../../support/command-host.ts";
import { type TaskPerson, TaskWorld } from "../../support/task-world.ts";
import type { Finished } from "../../unit/cli/run.ts";

/** A label that no path can hold as it is, and one that is also a word of a path. */
const odd = "a/b?c=%41";
const word = "killed";

describe("a session that is named by its label, or by the beginning of its id", () => {
  let world: TaskWorld;
  /** Ids by person and label. */
  const ids = new Map<string, string>();

  before(async () => {
    world = await TaskWorld.open();
    for (const [person, label] of [
      ["agent", "nightly"],
      ["agent", odd],
      ["agent", word],
      ["agent", "shared"],
      ["other", "shared"],
      ["foreign", "abroad"],
      ["foreign", "nightly"],
    ] as const) {
      await world.agent(person, label).call("echo", {});
    }
    for (const tenant of ["owner", "foreign"] as const) {
      const { body } = await world.admin("GET", "/admin/v1/evidence/sessions", tenant);
      for (const session of (body as unknown as { items: readonly { id: string; label: string; principal: string }[] })
        .items) {
        const key = `${tenant}/${session.label}`;
        ids.set(ids.has(key) ? `${key}/2` : key, session.id);
      }
    }
  });

  after(() => world.stop());

  const idOf = (name: string): string => ids.get(name) ?? "";

  function gateway(words: readonly string[], person: TaskPerson = "owner"): Promise<Finished> {
    return runCommand(words, { GATEWAY_API_KEY: world.key(person), GATEWAY_ADMIN_URL: world.gateway.adminUrl });
  }

  async function shownBy(name: string): Promise<unknown> {
    const { stdout, stderr, code } = await gateway(["sessions", "show", name, "--json"]);
    return code === 0 ? (JSON.parse(stdout) as JsonObject).session : stderr;
  }

  it("is shown, whatever the label looks like", async () => {
    expect(await shownBy("nightly")).to.equal(idOf("owner/nightly"));
    expect(await shownBy(odd)).to.equal(idOf(`owner/${odd}`));
    expect(await shownBy(word)).to.equal(idOf(`owner/${word}`));
    expect(await shownBy("label:nightly")).to.equal(idOf("owner/nightly"));
    expect(await shownBy(idOf("owner/nightly").slice(0, 31))).to.equal(idOf("owner/nightly"));
    expect(await shownBy(idOf("owner/nightly"))).to.equal(idOf("owner/nightly"));
  });

  it("has its label in the list of sessions", async () => {
    const { stdout } = await gateway(["sessions", "list"]);
    const [titles = "", ...rows] = stdout.trimEnd().split("\n");
    expect(titles).to.match(/^session +label +state +risk +actions +reviews +tools +last action +taints$/);
    expect(rows.map((row) => row.split(/ +/).slice(0, 2)).toSorted()).to.deep.equal(
      [...ids]
        .flatMap(([key, id]) => (key.startsWith("owner/") ? [[id, key.split("/").slice(1).join("/")]] : []))
        .map(([id, label]) => [id, label === "shared/2" ? "shared" : label])
        .toSorted(),
    );
  });

  it("is refused with the candidates where several have the name", async () => {
    const both = [idOf("owner/shared"), idOf("owner/shared/2")];
    for (const asked of [
      ["sessions", "show", "shared"],
      ["sessions", "kill", "shared"],
    ]) {
      const { stderr, code } = await gateway(asked);
      expect(code, stderr).to.equal(1);
      expect(stderr).to.match(
        /^gateway: several sessions have this name: expected the name of one, got `label:shared`/,
      );
      for (const id of both) expect(stderr).to.include(id);
      for (const key of ["(agent)", "(other)"]) expect(stderr).to.include(key);
    }
    const { status, body } = await world.admin("GET", "/admin/v1/sessions/label:shared");
    expect([status, body.code]).to.deep.equal([409, "SESSION_AMBIGUOUS"]);
    expect((body as unknown as { data: { sessions: readonly string[] } }).data.sessions).to.have.members(both);
    const killed = await world.admin("GET", "/admin/v1/kills");
    expect((killed.body as unknown as { items: readonly unknown[] }).items).to.deep.equal([]);
  });

  it("is stopped and released, and nobody else's session of the same label", async () => {
    const stopped = await gateway(["sessions", "kill", "nightly"]);
    expect(stopped.stderr).to.equal(`gateway: stopped ${idOf("owner/nightly")}\n`);
    expect((await world.agent("foreign", "nightly").call("echo", {})).result?.isError ?? false).to.equal(false);
    const reached = await world.reached();
    expect((await world.agent("agent", "nightly").call("echo", {})).result?.isError).to.equal(true);
    expect(await world.reached()).to.equal(reached);
    const released = await gateway(["sessions", "release", idOf("owner/nightly").slice(0, 27), "--reason", "over"]);
    expect(released.stderr).to.equal(`gateway: released ${idOf("owner/nightly")}\n`);
    const path = "/admin/v1/sessions/label:nightly";
    expect((await world.admin("POST", `${path}/kill`, "owner", {})).status).to.equal(200);
    expect((await world.admin("POST", `${path}/release`, "owner", { reason: "over" })).status).to.equal(200);
    expect((await gateway(["sessions", "reset", odd, "--reason", "over"])).stderr).to.equal(
      `gateway: reset ${idOf(`owner/${odd}`)}\n`,
    );
  });

  it("has its evidence exported, reported and listed", async () => {
    const file = join(tmpdir(), `named-${process.pid}.jsonl`);
    for (const command of ["export", "report"]) {
      const { code, stderr } = await gateway(["evidence", command, odd, "--file", file]);
      expect(code, stderr).to.equal(0);
      await rm(file);
    }
    const { body } = await world.admin("GET", "/admin/v1/evidence/sessions/label:nightly");
    const { items } = body as unknown as { items: readonly { session: { id: string } }[] };
    expect(new Set(items.map(({ session }) => session.id))).to.deep.equal(new Set([idOf("owner/nightly")]));
    const query = {
      query: `{ session(id: "label:nightly") { session } records(session: "label:nightly") { items { seq } } }`,
    };
    const { data } = (await world.admin("POST", "/admin/v1/graphql", "owner", query)).body as unknown as {
      data: { session: { session: string }; records: { items: readonly unknown[] } };
    };
    expect(data.session.session).to.equal(idOf("owner/nightly"));
    expect(data.records.items).to.have.length(items.length);
  });

  it("is unknown to another tenant, as what nobody has", async () => {
    const start = idOf("foreign/abroad").slice(0, 31);
    for (const name of ["abroad", start, "nobody", "session-v1-0000"]) {
      const { code, stderr } = await gateway(["sessions", "show", name]);
      expect([code, stderr], name).to.deep.equal([1, "gateway: not found: no such session\n"]);
      const stopped = await gateway(["sessions", "kill", name]);
      expect([stopped.code, stopped.stderr], name).to.deep.equal([1, "gateway: not found: no such session\n"]);
    }
    // Three digits would name too many.
    expect((await gateway(["sessions", "show", "session-v1-abc"])).stderr).to.include("no such session");
  });
});
