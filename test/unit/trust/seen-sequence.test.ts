import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { listTenants } from "../../../core/store/key-range.ts";
import { openStore, type Store } from "../../../core/store/open.ts";
import { readExtensionFolder } from "../../../core/trust/folder.ts";
import { SeenSequences } from "../../../core/trust/seen-sequence.ts";
import { acceptUnverified, isRefused, type VerifiedExtension } from "../../../core/trust/verified-extension.ts";
import { verifyExtension } from "../../../core/trust/verifier.ts";
import { rejection } from "../../support/ledger-world.ts";
import { makeSigner, TrustWorld } from "../../support/trust-world.ts";

const signer = makeSigner();
const unbounded = { identity: null, notBefore: null, notAfter: null, tightenOnly: false };
const signers = [{ name: "pat", key: { keyId: signer.id, spki: signer.spki }, ...unbounded }];
const policy = { allOf: signers, anyOf: null, trustedRoot: null, builder: null, revoked: { digests: [], keys: [] } };
const claim = { kind: "pack", name: "open" };

describe("SeenSequences", () => {
  let dir: string;
  let store: Store;
  let world: TrustWorld;

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "sequence-"));
    store = await openStore({ dir, enabled: true });
    world = await TrustWorld.make();
  });

  afterEach(async () => {
    await store.close();
    await rm(dir, { recursive: true });
    await world.remove();
  });

  it("remembers the highest over restarts, and belongs to no tenant", async () => {
    const [third, second] = [await trusted(3), await trusted(2)];
    await new SeenSequences(store).remember([third]);
    await new SeenSequences(store).remember([second]);
    await store.close();
    store = await openStore({ dir, enabled: true });
    expect(await new SeenSequences(store).lookUp(claim)).to.deep.equal({ sequence: 3, digest: third.digest });
    expect(await new SeenSequences(store).lookUp({ ...claim, kind: "plugin" })).to.equal(undefined);
    expect(await listTenants(store)).to.deep.equal([]);
  });

  it("learns nothing from what is not trusted", async () => {
    await new SeenSequences(store).remember([acceptUnverified(await readExtensionFolder(world.pack, "pack"), null)]);
    expect(await new SeenSequences(store).lookUp(claim)).to.equal(undefined);
  });

  it("refuses to go on from an entry that it cannot read", async () => {
    await store.put("extension-sequence-pack-open", '{"sequence":"3"}');
    expect(await rejection(new SeenSequences(store).lookUp(claim))).to.include({ code: "STATE_UNUSABLE" });
  });

  async function trusted(sequence: number): Promise<VerifiedExtension> {
    await world.setSequence(sequence);
    await world.sign([signer]);
    const folder = await readExtensionFolder(world.pack, "pack");
    const result = await verifyExtension(folder, policy, "2026-06-01T00:00:00.000Z", async () => undefined);
    if (isRefused(result)) throw new Error(result.check);
    return result;
  }
});
