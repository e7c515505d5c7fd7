import { expect } from "chai";
import type { JSONWebKeySet } from "jose";
import { SigningKeys } from "../../../core/identity/signing-keys.ts";
import { type IssuerKey, newIssuerKey, publishedKey } from "../../support/token-issuer.ts";

const old = newIssuerKey("old");
const rotated = newIssuerKey("rotated");
const cacheMs = 600_000;
const refetchMs = 10_000;

/** An issuer whose answers and whose time the test decides. */
class World {
  now = 0;
  published: readonly IssuerKey[] = [old];
  isReachable = true;
  fetchCount = 0;
  faultCount = 0;
  /** Fetches wait for it. */
  gate: Promise<void> = Promise.resolve();
  readonly keys: SigningKeys = new SigningKeys({
    fetch: () => this.#fetch(),
    cacheMs,
    refetchMs,
    elapsedMs: () => this.now,
    onFetched: () => undefined,
    onFault: () => this.faultCount++,
  });

  /** The type of the key that a token with this key id is verified with, or the code of the refusal. */
  async find(kid: string): Promise<string> {
    const header = { alg: "ES256", kid };
    return this.keys.find(header, { payload: "", signature: "" }).then(
      ({ type }) => type,
      (cause) => cause.data?.reason ?? cause.code,
    );
  }

  async #fetch(): Promise<JSONWebKeySet> {
    this.fetchCount++;
    await this.gate;
    if (!this.isReachable) throw new Error("unreachable");
    return { keys: await Promise.all(this.published.map(publishedKey)) };
  }
}

describe("SigningKeys", () => {
  it("fetches once for many tokens, and at once for concurrent ones", async () => {
    const world = new World();
    const found = await Promise.all(Array.from({ length: 50 }, () => world.find("old")));
    expect(new Set(found)).to.deep.equal(new Set(["public"]));
    expect(await world.find("old")).to.equal("public");
    expect(world.fetchCount).to.equal(1);
  });

  it("finds a rotated key with one further fetch", async () => {
    const world = new World();
    await world.find("old");
    world.published = [old, rotated];
    world.now = refetchMs;
    expect([await world.find("rotated"), await world.find("old"), world.fetchCount]).to.deep.equal([
      "public",
      "public",
      2,
    ]);
  });

  it("fetches for unknown key ids no more often than the least time between two fetches", async () => {
    const world = new World();
    await world.find("old");
    for (world.now = 0; world.now < 5 * refetchMs; world.now += 100) {
      expect(await world.find(`unknown-${world.now}`)).to.equal("ERR_JWKS_NO_MATCHING_KEY");
    }
    expect(world.fetchCount).to.equal(1 + 4);
  });

  describe("when the issuer cannot be reached", () => {
    it("refuses, and tries again only after the least time between two fetches", async () => {
      const world = new World();
      world.isReachable = false;
      for (world.now = 0; world.now < refetchMs; world.now += 1_000) {
        expect(await world.find("old")).to.equal("keys_unavailable");
      }
      expect([world.fetchCount, world.faultCount]).to.deep.equal([1, 1]);
      world.isReachable = true;
      expect(await world.find("old")).to.equal("public");
    });

    it("lets cached keys serve to the end of their time, and not a millisecond longer", async () => {
      const world = new World();
      await world.find("old");
      world.isReachable = false;
      for (world.now = 0; world.now < cacheMs; world.now += 15_000) expect(await world.find("old")).to.equal("public");
      world.now = cacheMs - 1;
      expect(await world.find("old")).to.equal("public");
      world.now = cacheMs;
      expect(await world.find("old")).to.equal("keys_unavailable");
      expect(world.fetchCount)
        .to.be.above(2)
        .and.at.most(2 + cacheMs / refetchMs);
    });

    it("keeps the cached keys where an unknown key id made it try", async () => {
      const world = new World();
      await world.find("old");
      world.isReachable = false;
      world.now = refetchMs;
      expect([await world.find("unknown"), await world.find("old")]).to.deep.equal(["keys_unavailable", "public"]);
    });
  });

  it("renews keys from half of their time on, while the cached ones serve without waiting", async () => {
    const world = new World();
    await world.find("old");
    world.published = [rotated];
    world.now = cacheMs / 2;
    let open = (): void => undefined;
    world.gate = new Promise((resolve) => {
      open = resolve;
    });
    expect([await world.find("old"), world.fetchCount]).to.deep.equal(["public", 2]);
    open();
    await new Promise(setImmediate);
    await world.gate;
    // The withdrawn key verifies nothing from now on.
    for (let turn = 0; turn < 50 && (await world.find("old")) === "public"; turn++) await new Promise(setImmediate);
    expect([await world.find("old"), await world.find("rotated")]).to.deep.equal([
      "ERR_JWKS_NO_MATCHING_KEY",
      "public",
    ]);
  });
});
