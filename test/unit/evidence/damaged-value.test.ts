import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import { VerifyingKey } from "../../../core/action/signing-key.ts";
import { evidenceRules } from "../../../core/compose/evidence-rules.ts";
import { readBundle } from "../../../core/evidence/bundle/bundle-line.ts";
import { SessionExport } from "../../../core/evidence/bundle/session-export.ts";
import { verifyBundle } from "../../../core/evidence/bundle/verify.ts";
import { KeyFolder } from "../../../core/evidence/key/key-folder.ts";
import { prunedKey } from "../../../core/evidence/record/key-space.ts";
import type { EventRecord } from "../../../core/evidence/record/record.ts";
import { LedgerWorld, newAction } from "../../support/ledger-world.ts";

const {
  principal,
  session: { id: session },
} = newAction();
const slots = 16;
/** Texts of other shapes than any value has, or has in its place. */
const strange = [
  "",
  "x",
  "null",
  "[]",
  "{}",
  "-1",
  "1.5",
  JSON.stringify(Array(slots).fill(7)),
  JSON.stringify(Array(slots).fill(["zz", {}, "q"])),
];
const changedPlaces = 5;

describe("a value of the store that was damaged", () => {
  let world: LedgerWorld;
  let exporter: SessionExport;
  let genesis: EventRecord;

  before(async () => {
    world = await LedgerWorld.create();
    const ledger = await world.open();
    const keys = new KeyFolder(world.keysPath, () => new Uint8Array(32));
    // What is on record of an export would change what the next one reads.
    const silent = {
      recordEvent: async () => undefined,
      disclosure: ledger.disclosure.bind(ledger),
      stateSecret: ledger.stateSecret.bind(ledger),
    };
    exporter = new SessionExport({ store: world.store, keys, ledger: silent, clock: world.clock.now });
    for (const label of ["work", "another", "work"]) await world.act({}, label);
    await ledger.recordEvent("acme", "session", { event: "killed", scope: "principal", principal: principal.id });
    await bundle(); // which keeps a state
    await world.act();
    genesis = (await world.recordsOf())[0] as EventRecord;
  });
  after(() => world.remove());

  function bundle(): Promise<Buffer> {
    return exporter.bundle("acme", { session, by: "principal-v1-auditor", disclose: true, redact: [] });
  }

  /** The records that a bundle proves; `unsound` where its verifier is not content. */
  function provenBy(bytes: Buffer): unknown {
    const key = VerifyingKey.parse(String(genesis.detail.public_key)) as VerifyingKey;
    const { verdict } = verifyBundle(bytes, { keys: [key], rules: evidenceRules, nowMs: world.clock.nowMs });
    return verdict === "self-attested" ? readBundle(bytes).entries.map(({ record }) => record) : "unsound";
  }

  function records(): Promise<unknown> {
    return world.ledger.records("acme", session, { limit: 100 });
  }

  async function outcomeOf(read: () => Promise<unknown>): Promise<unknown> {
    try {
      return await read();
    } catch (error) {
      if (error instanceof GatewayError) return error.code;
      throw error;
    }
  }

  /** Does something to every value in turn; the store is as before afterwards. */
  async function damageEach(
    damage: (value: string) => readonly string[],
    check: (named: string) => Promise<void>,
  ): Promise<void> {
    const entries = await world.store.iterator().all();
    for (const [key, value] of entries) {
      for (const text of damage(value)) {
        await world.store.put(key, text);
        await check(`${key} = ${text.slice(0, 60)}`);
        await world.store.clear();
        await world.store.batch(entries.map(([key, value]) => ({ type: "put", key, value })));
      }
    }
  }

  it("changes nothing that is listed, shown or exported, or is said to be unavailable, whatever its shape", async () => {
    const sessions = (): Promise<unknown> => world.ledger.sessions("acme", { limit: 100 });
    // Bytes may differ: an export without a published state keeps one.
    const reads = [sessions, records, async () => provenBy(await bundle())];
    const whole = await Promise.all(reads.map((read) => read()));
    let refused = 0;
    await damageEach(
      (value) => [...strange, value.slice(0, -1)],
      async (named) => {
        for (const [at, read] of reads.entries()) {
          const outcome = await outcomeOf(read).catch((cause: unknown) => {
            throw new Error(named, { cause });
          });
          if (typeof outcome !== "string") expect(outcome, named).to.deep.equal(whole[at]);
          else {
            expect(outcome, named).to.be.oneOf(["EVIDENCE_UNAVAILABLE", "NOT_FOUND", "unsound"]);
            refused++;
          }
        }
      },
    );
    expect(refused).to.be.above(100);
    expect(await Promise.all(reads.map((read) => read()))).to.deep.equal(whole);
  });

  it("is said to be unavailable where it tells what was pruned", async () => {
    await world.store.put(prunedKey("acme"), "x");
    for (const read of [records, bundle]) expect(await outcomeOf(read)).to.equal("EVIDENCE_UNAVAILABLE");
    await world.store.del(prunedKey("acme"));
  });

  it("changes no record that is shown, and nothing that a bundle is trusted for, where characters of it are others", async () => {
    const whole = await Promise.all([records(), bundle()]);
    await damageEach(changedTexts, async (named) => {
      const shown = await outcomeOf(records);
      if (typeof shown === "string") expect(shown, named).to.equal("EVIDENCE_UNAVAILABLE");
      else expect(shown, named).to.deep.equal(whole[0]);
      const exported = await outcomeOf(bundle);
      if (typeof exported === "string") expect(exported, named).to.equal("EVIDENCE_UNAVAILABLE");
      else if (!whole[1].equals(exported as Buffer)) expect(provenBy(exported as Buffer), named).to.equal("unsound");
    });
  });
});

/** The value with another letter or digit in some places. */
function changedTexts(value: string): readonly string[] {
  const places = [...value.matchAll(/[0-9a-z]/g)].map(({ index }) => index);
  return Array.from({ length: Math.min(changedPlaces, places.length) }, (_, count) => {
    const at = places[Math.floor(((count + 0.5) * places.length) / changedPlaces)] ?? places[count] ?? 0;
    return `${value.slice(0, at)}${value[at] === "1" ? "2" : "1"}${value.slice(at + 1)}`;
  });
}
