import { expect } from "chai";
import { canonicalJson, contentDigest } from "../../../core/action/canonical-json.ts";
import { GatewayError } from "../../../core/action/error.ts";
import type { JsonObject } from "../../../core/action/json.ts";
import { type DefinitionLog, DefinitionStore, definitionLimits } from "../../../core/definition/definition-store.ts";
import { entryKey } from "../../../core/definition/entry.ts";
import type { PublishedTool } from "../../../core/definition/published-tool.ts";
import { readEvents } from "../../../core/evidence/chain/session-record.ts";
import { reviewer } from "../../support/approval-world.ts";
import { LedgerWorld, rejection } from "../../support/ledger-world.ts";

const agent = reviewer("agent");

/** A tool of `math`, as it is listed anew. */
function toolOf(name: string, description = "Adds.", upstream = "math"): PublishedTool {
  const definition = { name, description, inputSchema: { type: "object" } };
  const digest = contentDigest(canonicalJson(definition));
  return { upstream, name, exposedName: name, definition, digest, standings: new Map() };
}

function findingsOf(tool: PublishedTool, tenant = "acme"): readonly string[] | undefined {
  return tool.standings.get(tenant)?.marks.findings;
}

describe("DefinitionStore", () => {
  let world: LedgerWorld;
  let log: DefinitionLog;
  let store: DefinitionStore;

  beforeEach(async () => {
    world = await LedgerWorld.create();
    log = await world.open();
    store = open();
  });

  afterEach(() => world.remove());

  function open(over: Partial<DefinitionLog> = {}, database = world.store): DefinitionStore {
    const upstreams = ["math", "mail"].map((name) => ({ name, definitions: { pin: true, newTools: "pin" as const } }));
    const recording: DefinitionLog = { recordEvent: (...event) => log.recordEvent(...event), ...over };
    const onWithheld = async (): Promise<void> => undefined;
    return new DefinitionStore({ store: database, log: recording, clock: world.clock.now, upstreams, onWithheld });
  }

  async function events(): Promise<readonly JsonObject[]> {
    const details: JsonObject[] = [];
    for await (const { detail } of readEvents(world.store, "acme", "admin")) details.push(detail);
    return details;
  }

  it("pins what a tenant first meets, without a record, and withholds another definition of it, also after a restart", async () => {
    const first = toolOf("add");
    await store.judge(agent, [first]);
    expect([findingsOf(first), await events()]).to.deep.equal([undefined, []]);
    for (const opened of [store, open()]) {
      const [again, other] = [toolOf("add"), toolOf("add", "Adds otherwise.")];
      await opened.judge(agent, [again]);
      await opened.judge(agent, [other]);
      expect([findingsOf(again), findingsOf(other)]).to.deep.equal([undefined, ["changed"]]);
    }
    expect((await events()).map(({ action }) => action)).to.deep.equal(["definition.withhold"]);
  });

  it("pins for each tenant by itself", async () => {
    await store.judge(agent, [toolOf("add")]);
    const other = toolOf("add", "Adds otherwise.");
    await store.judge(reviewer("agent", "operator", "other"), [other]);
    expect(findingsOf(other, "other")).to.equal(undefined);
  });

  it("asks no more about tools that stand as of its generation", async () => {
    const tool = toolOf("add");
    await store.judge(agent, [tool]);
    const standing = tool.standings.get("acme");
    await store.judge(agent, [tool]);
    expect(tool.standings.get("acme")).to.equal(standing);
  });

  it("keeps no more than 200 reviews of an upstream, and one record of them, however many change at once", async () => {
    const names = Array.from({ length: definitionLimits.reviews + 50 }, (_, at) => `tool_${at}`);
    await store.judge(
      agent,
      names.map((name) => toolOf(name)),
    );
    const changed = names.map((name) => toolOf(name, "Adds otherwise."));
    await store.judge(agent, changed);
    const found = changed.map((tool) => findingsOf(tool)?.join());
    expect(found.filter((each) => each === "changed")).to.have.length(200);
    expect(found.filter((each) => each === "changed,limit")).to.have.length(50);
    const [withheld, ...others] = await events();
    expect([
      others.length,
      withheld?.omitted,
      (withheld as { definitions?: readonly object[] } | undefined)?.definitions?.length,
    ]).to.deep.equal([0, 150, 50]);
  });

  it("withholds a definition of more than 262,144 characters, and keeps nothing of it", async () => {
    const long = toolOf("add", "a".repeat(definitionLimits.definition));
    await store.judge(agent, [long]);
    expect(findingsOf(long)).to.deep.equal(["limit"]);
    expect(await store.readReview("acme", { upstream: "math", tool: "add" })).to.equal(undefined);
  });

  it("keeps one review of a tool, of what is published now", async () => {
    await store.judge(agent, [toolOf("add")]);
    for (const text of ["One.", "Two.", "Three."]) await store.judge(agent, [toolOf("add", text)]);
    const review = await store.readReview("acme", { upstream: "math", tool: "add" });
    expect(review?.definition.description).to.equal("Three.");
  });

  it("lets nothing stand where a record cannot be made, and judges anew afterwards", async () => {
    await store.judge(agent, [toolOf("add")]);
    const refuse = async (): Promise<void> => {
      throw new GatewayError("EVIDENCE_UNAVAILABLE");
    };
    const changed = toolOf("add", "Adds otherwise.");
    const failed = await open({ recordEvent: refuse }).judge(agent, [changed]).then(String, String);
    expect(failed).to.contain("evidence");
    expect(changed.standings.size).to.equal(0);
    await store.judge(agent, [changed]);
    expect(findingsOf(changed)).to.deep.equal(["changed"]);
  });

  it("says that the store cannot be read, or written, where the database finds damage [S46]", async () => {
    const damage = Object.assign(new Error("000005.ldb, byte 17: checksum"), { code: "LEVEL_CORRUPTION" });
    for (const method of ["iterator", "batch"] as const) {
      const failing = new Proxy(world.store, {
        get(of, name) {
          if (name === method) throw damage;
          const value = Reflect.get(of, name);
          return typeof value === "function" ? value.bind(of) : value;
        },
      });
      const tool = toolOf("add");
      const fault = await rejection(open({}, failing).judge(agent, [tool]));
      expect(fault).to.include({ code: "EVIDENCE_UNAVAILABLE", cause: damage });
      expect(tool.standings.size).to.equal(0);
    }
  });

  it("refuses a damaged entry, and whatever it is asked then", async () => {
    await store.judge(agent, [toolOf("add")]);
    const key = entryKey("acme", "pin", { upstream: "math", tool: "add" });
    const text = (await world.store.get(key)) ?? "";
    await world.store.put(key, text.replace("Adds.", "Adds!"));
    for (const _ of [1, 2]) {
      const failed = await open()
        .judge(agent, [toolOf("add")])
        .then(String, (cause: GatewayError) => cause.code);
      expect(failed).to.equal("STATE_UNUSABLE");
    }
  });
});
