import { expect } from "chai";
import { KeyFolder } from "../../../../core/evidence/key/key-folder.ts";
import {
  checkpointAtKey,
  checkpointKey,
  recordKey,
  stateKey,
  statePageRange,
} from "../../../../core/evidence/record/key-space.ts";
import { StoreView } from "../../../../core/evidence/record/store-view.ts";
import { type ShownStates, StateStore } from "../../../../core/evidence/state/state-store.ts";
import { parseCheckpoint, type SignedCheckpoint } from "../../../../core/evidence/tree/checkpoint.ts";
import { newAction, rejection } from "../../../support/ledger-world.ts";
import { PruneWorld } from "../../../support/prune-world.ts";

const { principal, session } = newAction({}, "young");
const old = newAction({}, "old").session.id;

describe("StateStore", () => {
  let world: PruneWorld;
  let states: StateStore;

  beforeEach(async () => {
    world = await PruneWorld.create();
    await world.open();
    states = open();
    for (const label of ["old", "old", "young"]) await world.act({}, label);
  });
  afterEach(() => world.remove());

  function open(): StateStore {
    const keys = new KeyFolder(world.keysPath, () => new Uint8Array(32));
    return new StateStore({ store: world.store, ledger: world.ledger, keys });
  }

  async function latest(): Promise<SignedCheckpoint> {
    const checkpoint = parseCheckpoint((await world.store.get(checkpointKey("acme"))) ?? "");
    if (checkpoint === undefined) throw new Error("expected a checkpoint");
    return checkpoint;
  }

  async function show(of = session.id): Promise<ShownStates> {
    await using held = await states.hold("acme");
    const view = new StoreView(world.store, held.snapshot);
    return await states.show(view, "acme", await latest(), { session: of, principal: principal.id });
  }

  it("names in a published checkpoint what an export of the same size names", async () => {
    await states.publish("acme");
    for (let each = 0; each < 20; each++) await world.act({}, `more ${each % 3}`);
    await world.ledger.recordEvent("acme", "session", { event: "killed", scope: "session", session: session.id });
    const shown = await show();
    expect(shown.states.map(({ session }) => session.value)).to.deep.equal([
      [7, 1],
      [7, 0],
    ]);
    expect(await states.publish("acme")).to.equal(shown.checkpoint);
    expect((await show()).states).to.deep.equal(shown.states.slice(0, 1));
  });

  it("keeps the published state for exports, whatever is exported meanwhile", async () => {
    const note = await states.publish("acme");
    await world.act({}, "young");
    await show();
    const { published, states: shown } = await show();
    expect([published, shown.length]).to.deep.equal([note, 2]);
    expect(shown[1]?.state.size).to.equal(parseCheckpoint(note ?? "")?.size);
  });

  it("goes on from what is kept: it reads no record that a published state is over", async () => {
    await states.publish("acme");
    const seq = 3;
    const text = (await world.store.get(recordKey("acme", seq))) ?? "";
    await world.store.put(recordKey("acme", seq), "damaged");
    await world.act({}, "young");
    states = open();
    expect((await show()).states[0]?.session.value).to.deep.equal([9, 0]);
    await world.store.put(recordKey("acme", seq), text);
  });

  it("comes to the same in several writes as at once", async () => {
    const all = Array.from({ length: 5_000 }, (_, at) => world.ledger.recordEvent("acme", "admin", { at }));
    await Promise.all(all);
    await world.act({}, "young");
    const { checkpoint } = await show();
    expect(await states.publish("acme")).to.equal(checkpoint);
    expect(await world.store.get(checkpointAtKey("acme", (await latest()).size))).to.equal(checkpoint);
  });

  it("signs nothing that comes of a state which its disk has damaged", async () => {
    await states.publish("acme");
    await world.act({}, "young");
    const { size } = await latest();
    const key = stateKey("acme");
    const text = (await world.store.get(key)) ?? "";
    for (const damaged of [text.replace(/"tenant":\d/, '"tenant":7'), text.replace(/"map":"./, '"map":"z'), "7"]) {
      expect(damaged).to.not.equal(text);
      await world.store.put(key, damaged);
      for (const read of [states.publish("acme"), show()]) {
        expect(await rejection(read), damaged).to.include({ code: "EVIDENCE_UNAVAILABLE" });
      }
      expect(await world.store.get(checkpointAtKey("acme", size))).to.equal(undefined);
    }
    await world.store.put(key, text);
    expect(await states.publish("acme")).to.not.equal(undefined);
  });

  it("forgets a session whose records were pruned, and counts on what stopped one", async () => {
    await world.ledger.recordEvent("acme", "session", { event: "killed", scope: "session", session: old });
    await world.ledger.recordEvent("acme", "session", { event: "released", scope: "session", session: old });
    await world.act({}, "gone");
    await states.publish("acme");
    const before = (await world.store.values(statePageRange("acme")).all()).join().length;
    world.wakeUp();
    await world.act({}, "young");
    await world.prune();
    await states.publish("acme");
    const [gone] = (await show(newAction({}, "gone").session.id)).states;
    expect(gone?.session.value).to.deep.equal([]);
    expect((await show(old)).states[0]?.session.value).to.deep.equal([0, 2]);
    expect((await world.store.values(statePageRange("acme")).all()).join().length).to.be.below(before);
  });
});
