import { randomBytes } from "node:crypto";
import { readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { SigningKey } from "../../../../core/action/signing-key.ts";
import { KeyFolder } from "../../../../core/evidence/key/key-folder.ts";
import {
  checkpointAtKey,
  checkpointKey,
  keyRecordKey,
  recordKey,
  tileKey,
} from "../../../../core/evidence/record/key-space.ts";
import type { EventRecord } from "../../../../core/evidence/record/record.ts";
import {
  type Checkpoint,
  checkpointSigner,
  parseCheckpoint,
  type SignedCheckpoint,
  signCheckpoint,
} from "../../../../core/evidence/tree/checkpoint.ts";
import { LedgerWorld, rejection } from "../../../support/ledger-world.ts";

let world: LedgerWorld;

/** In each suite, because a hook outside of any runs for the tests of every file. */
function inOwnWorld(): void {
  beforeEach(async () => {
    world = await LedgerWorld.create();
    await world.open();
  });
  afterEach(() => world.remove());
}

async function events(count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, () => world.ledger.recordEvent("acme", "admin", {})));
}

async function get(key: string): Promise<string> {
  const value = await world.store.get(key);
  if (value === undefined) throw new Error(`expected ${key} in the store`);
  return value;
}

async function checkpointAt(key: string): Promise<SignedCheckpoint> {
  const checkpoint = parseCheckpoint(await get(key));
  if (checkpoint === undefined) throw new Error("expected a checkpoint");
  return checkpoint;
}

async function keyOf(seq: number): Promise<SigningKey> {
  const key = await new KeyFolder(world.keysPath, randomBytes).find(await get(keyRecordKey("acme", seq)));
  if (key === undefined) throw new Error("expected a key");
  return key;
}

function signedBy(keys: readonly SigningKey[], checkpoint: Checkpoint): string {
  return signCheckpoint(
    checkpoint,
    keys.map((key) => checkpointSigner(checkpoint.chain, key)),
  );
}

/** Signs the latest checkpoint anew, with something changed. */
async function resign(changed: Partial<SignedCheckpoint>, keys: readonly SigningKey[]): Promise<void> {
  const { note: _, ...checkpoint } = await checkpointAt(checkpointKey("acme"));
  await world.store.put(checkpointKey("acme"), signedBy(keys, { ...checkpoint, ...changed }));
}

async function firstBad(): Promise<unknown> {
  return (await world.ledger.verify("acme")).firstBad;
}

/** What a start says of the tenant. */
async function refusal(): Promise<string | undefined> {
  await world.close();
  await world.open();
  const status = world.ledger.status().find(({ tenant }) => tenant === "acme");
  return status?.state === "refused" ? status.reason : undefined;
}

const chainOfAcme = "chain of tenant `acme`";

describe("a chain's keys", () => {
  inOwnWorld();

  it("are made with the chain, named in its genesis record, and kept where nobody else reads", async () => {
    await events(1);
    const genesis = JSON.parse(await get(recordKey("acme", 0))) as EventRecord;
    const key = await keyOf(0);
    expect(genesis.detail).to.deep.equal({ key_id: key.id, public_key: key.public.text });
    expect((await readdir(world.keysPath)).sort()).to.deep.equal([`${genesis.chain}.wrap`, `${key.id}.pem`].sort());
    expect((await stat(join(world.keysPath, `${key.id}.pem`))).mode & 0o777).to.equal(0o600);
    expect((await stat(world.keysPath)).mode & 0o777).to.equal(0o700);
  });

  it("are one for each tenant", async () => {
    await events(1);
    await world.ledger.recordEvent("globex", "admin", {});
    expect((await readdir(world.keysPath)).filter((name) => name.endsWith(".pem"))).to.have.length(2);
  });

  describe("when they rotate", () => {
    it("hand over by a record and a checkpoint that both sign, and old checkpoints stay good", async () => {
      await events(3);
      const old = await keyOf(0);
      expect(await world.ledger.rotateKey("acme")).to.not.equal(old.id);
      const successor = await keyOf(4);
      await events(2);
      const names = (await checkpointAt(checkpointAtKey("acme", 5))).note.signatures.map(({ name }) => name);
      expect(names.map((name) => name.slice(-16))).to.deep.equal([old.id, successor.id]);
      const latest = await checkpointAt(checkpointKey("acme"));
      expect(latest.note.signatures.map(({ name }) => name.slice(-16))).to.deep.equal([successor.id]);
      expect(await world.ledger.verify("acme")).to.include({ ok: true, records: 7 });
      expect(await refusal()).to.equal(undefined);
      await world.ledger.rotateKey("acme");
      expect(await world.ledger.verify("acme")).to.include({ ok: true, records: 8 });
    });

    it("hand over between records that share one batch", async () => {
      await events(1);
      await Promise.all([events(20), world.ledger.rotateKey("acme"), events(20)]);
      expect(await world.ledger.verify("acme")).to.include({ ok: true, records: 43 });
      expect(await refusal()).to.equal(undefined);
    });

    it("may not sign for sizes after their time, nor before", async () => {
      await events(3);
      const old = await keyOf(0);
      await world.ledger.rotateKey("acme");
      const successor = await keyOf(4);
      await events(1);
      await resign({}, [old]);
      expect(await firstBad()).to.deep.equal({
        seq: 5,
        reason: "bad_signature",
        detail: "the checkpoint is not signed by the key of its size",
      });
      await resign({}, [successor]);
      const { note: _, ...first } = await checkpointAt(checkpointAtKey("acme", 1));
      await world.store.put(checkpointAtKey("acme", 1), signedBy([successor], first));
      expect(await firstBad()).to.deep.equal({
        seq: 0,
        reason: "bad_signature",
        detail: "the checkpoint is not signed by the key of its size",
      });
    });

    it("must both sign the checkpoint over the rotation", async () => {
      await events(1);
      await world.ledger.rotateKey("acme");
      const { note: _, ...over } = await checkpointAt(checkpointAtKey("acme", 3));
      await world.store.put(checkpointAtKey("acme", 3), signedBy([await keyOf(2)], over));
      expect(await firstBad()).to.deep.equal({
        seq: 2,
        reason: "bad_signature",
        detail: "the checkpoint is not signed by the key of its size",
      });
    });
  });

  describe("when the key file", () => {
    it("is missing, the next start refuses that tenant, and no other", async () => {
      await events(1);
      await world.ledger.recordEvent("globex", "admin", {});
      const { id } = await keyOf(0);
      await rm(join(world.keysPath, `${id}.pem`));
      expect(await refusal()).to.equal(`${chainOfAcme} is signed by key \`${id}\`, which is not in the key folder`);
      expect(await rejection(world.ledger.recordEvent("acme", "admin", {}))).to.include({
        code: "EVIDENCE_UNAVAILABLE",
      });
      await world.ledger.recordEvent("globex", "admin", {});
    });

    for (const [what, pem] of [
      ["holds another key", SigningKey.fromSeed(randomBytes(32)).toPem()],
      ["holds no key", "-----BEGIN PRIVATE KEY-----\n"],
    ] as const) {
      it(`${what}, the next start refuses that tenant`, async () => {
        await events(1);
        const { id } = await keyOf(0);
        await writeFile(join(world.keysPath, `${id}.pem`), pem);
        expect(await refusal()).to.equal(`${chainOfAcme} is signed by key \`${id}\`, which is not in the key folder`);
      });
    }

    it("cannot be made, no chain begins", async () => {
      await writeFile(world.keysPath, "a file where the folder should be");
      expect(await rejection(world.ledger.recordEvent("acme", "admin", {}))).to.include({
        code: "EVIDENCE_UNAVAILABLE",
        detail: "a new chain cannot be marked; see the log",
      });
    });
  });

  it("never stand in the store or the marks", async () => {
    await events(1);
    const { id } = await keyOf(0);
    const pem = await readFile(join(world.keysPath, `${id}.pem`), "utf8");
    const secret = Buffer.from(pem.split("\n")[1] ?? "", "base64").subarray(16);
    const everything =
      (await world.store.iterator().all()).flat().join("\n") + (await readFile(world.highWaterPath, "utf8"));
    for (const form of ["hex", "base64", "base64url"] as const)
      expect(everything).to.not.include(secret.toString(form));
  });
});

describe("a chain's checkpoints [R2.3-4, R7-9]", () => {
  inOwnWorld();

  it("come one with every batch, over chain and tree", async () => {
    for (const count of [1, 7, 300]) await events(count);
    const { size, head } = await checkpointAt(checkpointKey("acme"));
    expect({ size, head }).to.deep.equal({ size: 309, head: world.ledger.status()[0]?.head });
    expect((await checkpointAt(checkpointAtKey("acme", 1))).size).to.equal(1);
    expect(await world.ledger.verify("acme")).to.include({ ok: true, records: 309 });
  });

  const table: readonly [string, () => Promise<void>, unknown, string | undefined][] = [
    [
      "is gone",
      () => world.store.del(checkpointKey("acme")),
      { seq: 5, reason: "bad_checkpoint", detail: "the chain has no checkpoint" },
      "has no checkpoint",
    ],
    [
      "is an earlier one",
      async () => world.store.put(checkpointKey("acme"), await get(checkpointAtKey("acme", 1))),
      { seq: 5, reason: "bad_checkpoint", detail: "expected a checkpoint over 6 records, got one over 1" },
      "has a checkpoint over 1 records, expected 6",
    ],
    [
      "is of another chain",
      async () => resign({ chain: "another" }, [await keyOf(0)]),
      { seq: 5, reason: "foreign_chain", detail: "expected a checkpoint of this chain, got one of another" },
      "has a checkpoint of another chain",
    ],
    [
      "has another root",
      async () => resign({ root: randomBytes(32) }, [await keyOf(0)]),
      { seq: 5, reason: "bad_inclusion", detail: "the checkpoint's root is not that of the records" },
      "has a tree that differs from its checkpoint",
    ],
    [
      "has another head",
      async () => resign({ head: "ab".repeat(32) }, [await keyOf(0)]),
      { seq: 5, reason: "head_mismatch", detail: "the checkpoint is over another last record" },
      "has a checkpoint over another last record",
    ],
    [
      "has another time",
      async () => resign({ time: "2026-05-01T10:00:00.001Z" }, [await keyOf(0)]),
      { seq: 5, reason: "head_mismatch", detail: "the checkpoint is over another last record" },
      undefined,
    ],
    [
      "is signed by another key",
      () => resign({}, [SigningKey.fromSeed(randomBytes(32))]),
      { seq: 5, reason: "bad_signature", detail: "the checkpoint is not signed by the key of its size" },
      "has a checkpoint that its key did not sign",
    ],
    [
      "is no checkpoint",
      () => world.store.put(checkpointKey("acme"), "yes"),
      { seq: 5, reason: "bad_checkpoint", detail: "expected a checkpoint, got another text" },
      "has no checkpoint",
    ],
    [
      "is over more than there is",
      async () => world.store.put(checkpointAtKey("acme", 9), await get(checkpointKey("acme"))),
      { seq: 6, reason: "missing_record", detail: "the chain ends before one of its checkpoints" },
      undefined,
    ],
  ];
  for (const [what, change, bad, refused] of table) {
    it(`are found out when one ${what}`, async () => {
      await events(5);
      await change();
      expect(await firstBad()).to.deep.equal(bad);
      expect(await refusal()).to.equal(refused === undefined ? undefined : `${chainOfAcme} ${refused}`);
    });
  }
});

describe("a chain's tree", () => {
  inOwnWorld();

  it("is found out when a tile was changed", async () => {
    await events(600);
    const tile = await get(tileKey("acme", 0, 1));
    await world.store.put(tileKey("acme", 0, 1), `${tile[0] === "0" ? "1" : "0"}${tile.slice(1)}`);
    expect(await firstBad()).to.deep.equal({
      seq: 511,
      reason: "bad_inclusion",
      detail: "tile 1 of level 0 is not that of the records",
    });
    expect(await refusal()).to.equal(`${chainOfAcme} has a tree that differs from its checkpoint`);
  });

  it("is found out when a tile is gone", async () => {
    await events(600);
    await world.store.del(tileKey("acme", 0, 0));
    expect(await firstBad()).to.deep.equal({
      seq: 255,
      reason: "bad_inclusion",
      detail: "tile 0 of level 0 is not that of the records",
    });
    expect(await refusal()).to.equal(`${chainOfAcme} cannot be read: tile 0 of level 0 is missing`);
  });
});

describe("a chain whose records introduce no good key", () => {
  inOwnWorld();

  it("is refused when the list of keys was changed", async () => {
    await events(1);
    await world.store.put(keyRecordKey("acme", 0), "0123456789abcdef");
    expect(await firstBad()).to.deep.equal({
      seq: 0,
      reason: "unknown_key",
      detail: "the list of signing keys does not name the record's key",
    });
    expect(await refusal()).to.equal(`${chainOfAcme} has no good signing key at record 0`);
  });

  it("is refused when the list of keys is empty, as in a store from before keys", async () => {
    await events(1);
    await world.store.del(keyRecordKey("acme", 0));
    expect(await refusal()).to.equal(`${chainOfAcme} has no signing key`);
  });

  it("is found out where a rotation is not signed", async () => {
    await events(1);
    await world.ledger.recordEvent("acme", "key" as "admin", { event: "rotated" });
    expect(await firstBad()).to.deep.equal({
      seq: 2,
      reason: "bad_rotation",
      detail: "expected a rotation signed by the old and the new key",
    });
  });
});
