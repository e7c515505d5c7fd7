import { expect } from "chai";
import { MemoryLevel } from "memory-level";
import { pieceGroup, pieceKey, recordKey, sessionKey } from "../../../core/evidence/record/key-space.ts";
import { listTenants, pieceFamily, recordFamilies, recordPlace } from "../../../core/store/key-range.ts";

describe("listTenants(store)", () => {
  it("finds every tenant, and nothing that is not one", async () => {
    const store = new MemoryLevel<string, string>();
    const tenants = ["a", "a-b", "a.b", "a/b", "a0", "b", "ä", "epoch", "~", "!"];
    await store.put("epoch", "1");
    await store.put("format", "1");
    for (const tenant of tenants) {
      for (let seq = 0; seq < 3; seq++) await store.put(recordKey(tenant, seq), "");
      await store.put(sessionKey(tenant, "s"), "");
    }
    expect(await listTenants(store))
      .to.have.members(tenants)
      .and.to.have.length(tenants.length);
  });

  it("finds a tenant of whom only records are left", async () => {
    const store = new MemoryLevel<string, string>();
    await store.put(sessionKey("b", "s"), "");
    for (const tenant of ["a", "c/d"]) await store.put(recordKey(tenant, 1), "");
    await store.put(recordKey("e", 1, "disclosure"), "");
    await store.put(pieceKey("f", pieceGroup(1, "a"), 0), "");
    expect(await listTenants(store)).to.have.members(["a", "b", "c/d", "e", "f"]);
  });
});

describe("the families of records on disk", () => {
  it("are not searched for pieces among records, nor the other way: a start lists tenants by a few look-ups", () => {
    const isWithin = (key: string, { gte = "", lt = "\x7f" }): boolean => {
      const place = recordPlace(key) ?? "";
      return place >= gte && place < lt;
    };
    for (const tenant of ["acme", "~", "!", "(a)", " a", "{a}"]) {
      const piece = pieceKey(tenant, pieceGroup(1, "a"), 0);
      for (const family of recordFamilies) {
        const bounds = family.bounds({}) ?? {};
        expect(isWithin(piece, bounds), tenant).to.equal(family === pieceFamily);
        for (const part of ["record", "disclosure"] as const) {
          expect(isWithin(recordKey(tenant, 1, part), bounds), `${part} of ${tenant}`).to.equal(family !== pieceFamily);
        }
      }
    }
  });
});
