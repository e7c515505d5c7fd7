import { generateKeyPairSync } from "node:crypto";
import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import { type Principal, type SessionScope, sessionScope } from "../../../core/action/principal.ts";
import { readEvents } from "../../../core/evidence/chain/session-record.ts";
import type { ManifestLog } from "../../../core/manifest/manifest-store.ts";
import { type Declaration, declare } from "../../../core/manifest/plan.ts";
import { signReference } from "../../../core/manifest/reference.ts";
import { TaskBinding } from "../../../core/manifest/task-binding.ts";
import { readTaskManifest } from "../../../core/manifest/task-manifest.ts";
import { LedgerWorld } from "../../support/ledger-world.ts";

const { privateKey, publicKey } = generateKeyPairSync("ed25519");
const agent: Principal = { id: "principal-v1-agent", tenant: "acme", role: "viewer", keyId: "agent" };

describe("TaskBinding", () => {
  let world: LedgerWorld;
  let acted: boolean;
  let ofSession: Declaration | undefined;
  const declared = new Map(["nightly", "daily"].map((task) => [task, declarationOf(task)]));

  beforeEach(async () => {
    world = await LedgerWorld.create();
    await world.open();
    acted = false;
    ofSession = undefined;
  });

  afterEach(() => world.remove());

  function binding(log: ManifestLog = world.ledger): TaskBinding {
    return new TaskBinding({
      store: world.store,
      log,
      clock: world.clock.now,
      manifests: { find: (_, task) => declared.get(task), findForSession: () => ofSession },
      signers: [{ id: "ops", tenant: "acme", key: publicKey }],
      hasActed: () => acted,
    });
  }

  function token(task = "nightly", principal = "agent"): string {
    const exp = world.clock.nowMs / 1_000 + 60;
    return signReference(
      { tenant: "acme", principal, task, manifest: declared.get(task)?.digest ?? "", exp },
      privateKey,
    );
  }

  it("binds a session on record, and keeps it so over a start", async () => {
    await binding().bind(agent, session("one"), token());
    expect(binding().taskOf(agent, session("one"))).to.equal("nightly");
    expect(binding().taskOf(agent, session("two"))).to.equal(null);
    const events = [];
    for await (const { detail } of readEvents(world.store, "acme", "session")) events.push(detail);
    const manifest = declared.get("nightly")?.digest;
    expect(events).to.deep.equal([
      { event: "bound", session: session("one").id, task: "nightly", manifest, signer: "ops" },
    ]);
  });

  it("takes the principal's id as well as its key's", async () => {
    await binding().bind(agent, session("one"), token("nightly", agent.id));
    expect(binding().taskOf(agent, session("one"))).to.equal("nightly");
  });

  it("is in force before it is durable, and resolves once it is: for all that came with it", async () => {
    let finish: () => void = () => undefined;
    const tasks = binding({ recordEvent: () => new Promise((resolve) => (finish = resolve)) });
    const order: string[] = [];
    const bound = ["first", "second"].map((name) =>
      tasks.bind(agent, session("one"), token()).then(() => order.push(name)),
    );
    expect(tasks.taskOf(agent, session("one"))).to.equal("nightly");
    expect(await codeOf(tasks.bind(agent, session("one"), token("daily")))).to.equal("TASK_BOUND");
    expect(order).to.deep.equal([]);
    finish();
    await Promise.all(bound);
    expect(order).to.have.members(["first", "second"]);
  });

  it("is as if it had not been asked where it cannot be recorded", async () => {
    const tasks = binding({ recordEvent: () => Promise.reject(new GatewayError("EVIDENCE_UNAVAILABLE")) });
    expect(await codeOf(tasks.bind(agent, session("one"), token()))).to.equal("EVIDENCE_UNAVAILABLE");
    expect(tasks.taskOf(agent, session("one"))).to.equal(null);
  });

  it("refuses a session that acted without one, and lets one that has the task go on", async () => {
    acted = true;
    expect(await codeOf(binding().bind(agent, session("one"), token()))).to.equal("TASK_BOUND");
    acted = false;
    const tasks = binding();
    await tasks.bind(agent, session("one"), token());
    acted = true;
    expect(await codeOf(tasks.bind(agent, session("one"), token()))).to.equal("none");
  });

  it("refuses another task than the manifest of the session's own, and keeps a bound one to its task", async () => {
    ofSession = declared.get("daily");
    expect(await codeOf(binding().bind(agent, session("one"), token()))).to.equal("TASK_BOUND");
    expect(await codeOf(binding().bind(agent, session("one"), token("daily")))).to.equal("none");
    ofSession = undefined;
    const tasks = binding();
    await tasks.bind(agent, session("two"), token());
    ofSession = declared.get("daily");
    expect(tasks.taskOf(agent, session("two"))).to.equal("nightly");
    expect(tasks.taskOf(agent, session("three"))).to.equal("daily");
  });

  it("throws where an entry is damaged: nobody knows what the session may do", async () => {
    await binding().bind(agent, session("one"), token());
    const [key] = await world.store.keys({ gte: "acme/task-binding/", lt: "acme/task-binding0" }).all();
    for (const damaged of ["{", '{"task":7}']) {
      await world.store.put(String(key), damaged);
      expect(() => binding().taskOf(agent, session("one"))).to.throw();
    }
  });

  it("throws EVIDENCE_UNAVAILABLE while the store is closed, as it is during a repair", async () => {
    const tasks = binding();
    await world.store.close();
    expect(() => tasks.taskOf(agent, session("new")))
      .to.throw(GatewayError)
      .with.property("code", "EVIDENCE_UNAVAILABLE");
    await world.store.open();
    expect(tasks.taskOf(agent, session("new"))).to.equal(null);
  });
});

function declarationOf(task: string): Declaration {
  const lists = { expected_tools: [], expected_resources: [], write_domains: [] };
  const rest = { max_actions: 1, expires_at: "2026-12-31T00:00:00Z" };
  return declare(readTaskManifest({ task, principal: "agent", ...lists, ...rest }), "owner", "");
}

function session(label: string): SessionScope {
  return sessionScope("http", agent.tenant, agent.id, label);
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "none",
    (error: unknown) => GatewayError.from(error).code,
  );
}
