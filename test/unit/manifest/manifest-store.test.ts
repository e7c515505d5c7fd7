import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import type { JsonObject } from "../../../core/action/json.ts";
import { readEvents } from "../../../core/evidence/chain/session-record.ts";
import { openManifestControl } from "../../../core/manifest/manifest-control.ts";
import { type ManifestLog, ManifestStore } from "../../../core/manifest/manifest-store.ts";
import { manifestKey } from "../../../core/manifest/plan.ts";
import { readTaskManifest, type TaskManifest } from "../../../core/manifest/task-manifest.ts";
import { LedgerWorld } from "../../support/ledger-world.ts";

describe("ManifestStore", () => {
  let world: LedgerWorld;
  let manifests: ManifestStore;

  beforeEach(async () => {
    world = await LedgerWorld.create();
    await open();
  });

  afterEach(() => world.remove());

  async function open(): Promise<void> {
    const ledger = await world.open();
    manifests = storeOn(ledger);
    for (const { tenant } of ledger.status()) await manifests.load(tenant);
  }

  function storeOn(log: ManifestLog): ManifestStore {
    return new ManifestStore({ store: world.store, log, clock: world.clock.now });
  }

  function manifest(changed: Partial<TaskManifest> = {}): TaskManifest {
    return readTaskManifest({
      task: "nightly",
      principal: "agent",
      expected_tools: [],
      expected_resources: [],
      write_domains: [],
      max_actions: 5,
      expires_at: new Date(world.clock.nowMs + 1_000).toISOString(),
      ...changed,
    });
  }

  async function events(): Promise<readonly JsonObject[]> {
    const details: JsonObject[] = [];
    for await (const { detail } of readEvents(world.store, "acme", "admin")) details.push(detail);
    return details;
  }

  it("declares, on record with who did it and what it says, and finds it by its task and its scope [R2.5-1]", async () => {
    const { digest } = await manifests.declare("acme", manifest(), "owner");
    expect(manifests.find("acme", "nightly")).to.include({ digest, by: "owner", at: "2026-05-01T10:00:00.000Z" });
    expect(manifests.findForSession("acme", "agent", undefined)?.digest).to.equal(digest);
    expect(await events()).to.deep.equal([
      { action: "manifest.declare", principal: "owner", manifest: { ...manifest() }, digest },
    ]);
    expect([manifests.find("other", "nightly"), manifests.findForSession("other", "agent", undefined)]).to.deep.equal([
      undefined,
      undefined,
    ]);
  });

  it("prefers the manifest of a label to that of all sessions, and takes no other label's", async () => {
    await manifests.declare("acme", manifest(), "owner");
    await manifests.declare("acme", manifest({ task: "own", session: "one" }), "owner");
    const taskOf = (label?: string): string | undefined =>
      manifests.findForSession("acme", "agent", label)?.manifest.task;
    expect([taskOf("one"), taskOf("two"), taskOf()]).to.deep.equal(["own", "nightly", "nightly"]);
    expect(manifests.findForSession("acme", "agent2", "one")).to.equal(undefined);
  });

  it("replaces the manifest of a task, and names both on record", async () => {
    const { digest: replaced } = await manifests.declare("acme", manifest(), "owner");
    const { digest } = await manifests.declare("acme", manifest({ max_actions: 6 }), "other");
    expect(manifests.find("acme", "nightly")?.manifest.max_actions).to.equal(6);
    expect((await events()).at(-1)).to.include({ principal: "other", digest, replaced });
  });

  it("refuses another task for a scope, and another scope for a task, until the first is withdrawn", async () => {
    await manifests.declare("acme", manifest(), "owner");
    for (const other of [{ task: "daily" }, { session: "one" }, { principal: "other" }]) {
      expect(await codeOf(manifests.declare("acme", manifest(other), "owner")), JSON.stringify(other)).to.equal(
        "MANIFEST_CONFLICT",
      );
    }
    await manifests.withdraw("acme", "nightly", "owner");
    expect(await codeOf(manifests.declare("acme", manifest({ task: "daily" }), "owner"))).to.equal("none");
  });

  it("refuses a time that is past, and one beyond a year", async () => {
    const at = (ms: number): string => new Date(world.clock.nowMs + ms).toISOString();
    const year = 366 * 86_400_000;
    for (const late of [0, year + 1]) {
      expect(await codeOf(manifests.declare("acme", manifest({ expires_at: at(late) }), "owner"))).to.equal(
        "INVALID_PARAMS",
      );
    }
    for (const good of [1, year]) {
      expect(await codeOf(manifests.declare("acme", manifest({ expires_at: at(good) }), "owner"))).to.equal("none");
    }
  });

  it("keeps what is in force over a start, and what is not withdrawn for good", async () => {
    await manifests.declare("acme", manifest(), "owner");
    await manifests.declare("acme", manifest({ task: "own", session: "one" }), "owner");
    await manifests.withdraw("acme", "own", "owner");
    await world.close();
    await open();
    expect(manifests.list("acme", 10).items.map(({ manifest: { task } }) => task)).to.deep.equal(["nightly"]);
    expect(manifests.findForSession("acme", "agent", "one")?.manifest.task).to.equal("nightly");
  });

  it("knows nothing of what cannot be recorded, and leaves in force what was", async () => {
    const failing = storeOn({ recordEvent: () => Promise.reject(new GatewayError("EVIDENCE_UNAVAILABLE")) });
    expect(await codeOf(failing.declare("acme", manifest(), "owner"))).to.equal("EVIDENCE_UNAVAILABLE");
    expect(failing.find("acme", "nightly")).to.equal(undefined);
    await manifests.declare("acme", manifest(), "owner");
    await failing.load("acme");
    expect(await codeOf(failing.withdraw("acme", "nightly", "owner"))).to.equal("EVIDENCE_UNAVAILABLE");
    expect(failing.findForSession("acme", "agent", undefined)).to.not.equal(undefined);
  });

  it("makes one change at a time: of two at once for a scope, one is in force", async () => {
    const made = await Promise.all(
      ["one", "two"].map((task) => codeOf(manifests.declare("acme", manifest({ task }), "owner"))),
    );
    expect(made).to.deep.equal(["none", "MANIFEST_CONFLICT"]);
    expect(manifests.list("acme", 10).items).to.have.length(1);
  });

  it("lists page by page, a tenant's own", async () => {
    for (const task of ["c", "a", "b"]) await manifests.declare("acme", manifest({ task, session: task }), "owner");
    await manifests.declare("other", manifest({ task: "aa" }), "owner");
    const first = manifests.list("acme", 2);
    expect([first.items.map(({ manifest: { task } }) => task), first.next]).to.deep.equal([["a", "b"], "b"]);
    const second = manifests.list("acme", 2, first.next ?? "");
    expect([second.items.map(({ manifest: { task } }) => task), second.next]).to.deep.equal([["c"], null]);
  });

  it("rejects with NOT_FOUND where there is nothing to withdraw", async () => {
    expect(await codeOf(manifests.withdraw("acme", "nightly", "owner"))).to.equal("NOT_FOUND");
  });

  it("holds at most a thousand of a tenant", async () => {
    const fast = storeOn({ recordEvent: async () => undefined });
    for (let index = 0; index < 1_000; index++) {
      await fast.declare("acme", manifest({ task: `t${index}`, session: `t${index}` }), "owner");
    }
    expect(await codeOf(fast.declare("acme", manifest(), "owner"))).to.equal("MANIFEST_CONFLICT");
    expect(await codeOf(fast.declare("acme", manifest({ task: "t7", session: "t7" }), "owner"))).to.equal("none");
    expect(await codeOf(fast.declare("other", manifest(), "owner"))).to.equal("none");
  });

  for (const [what, change] of [
    ["is no JSON", (): string => "{"],
    ["is another manifest", (text: string): string => text.replace('"max_actions":5', '"max_actions":500')],
  ] as const) {
    it(`refuses a tenant at the start where an entry ${what}`, async () => {
      await manifests.declare("acme", manifest(), "owner");
      const key = manifestKey("acme", "nightly");
      await world.store.put(key, change((await world.store.get(key)) ?? ""));
      const { ledger, store } = world;
      const drift = { mode: "enforce", decision: "review" } as const;
      const parts = {
        store,
        ledger,
        clock: Date.now,
        drift,
        requireTask: false,
        taskSigners: [],
        hasActed: () => false,
      };
      await openManifestControl(parts);
      expect(ledger.status().map(({ state }) => state)).to.deep.equal(["refused"]);
    });
  }
});

async function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "none",
    (error: unknown) => GatewayError.from(error).code,
  );
}
