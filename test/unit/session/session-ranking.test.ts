import { expect } from "chai";
import fc from "fast-check";
import { type Listed, SessionRanking } from "../../../core/session/session-directory.ts";

function listed(session: string, value: number): Listed {
  return { session, value, head: null };
}

describe("SessionRanking", () => {
  it("gives every session once, in order, whatever the pages and the order of arrival", () => {
    const values = fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 40 });
    fc.assert(
      fc.property(values, fc.integer({ min: 1, max: 7 }), (all, limit) => {
        const sessions = all.map((value, index) => listed(`s${String(index).padStart(2, "0")}`, value));
        const ordered = sessions.toSorted(
          (one, other) => other.value - one.value || (one.session < other.session ? -1 : 1),
        );
        const found: Listed[] = [];
        let cursor: string | undefined;
        do {
          const ranking = new SessionRanking("risk", limit, 1_000, cursor);
          for (const each of sessions.toReversed()) ranking.add(each);
          const { items, next } = ranking.page();
          found.push(...items);
          cursor = next ?? undefined;
        } while (cursor !== undefined);
        expect(found).to.deep.equal(ordered);
      }),
    );
  });

  it("tells risk on every page as of the first", () => {
    const first = new SessionRanking("risk", 1, 1_000);
    for (const session of ["a", "b"]) first.add(listed(session, 1));
    expect(new SessionRanking("risk", 1, 9_000, first.page().next ?? "").now).to.equal(1_000);
  });

  it("throws INVALID_PARAMS for a cursor of another order, or of nobody", () => {
    const ranking = new SessionRanking("last", 1, 1_000);
    for (const session of ["a", "b"]) ranking.add(listed(session, 1));
    const { next } = ranking.page();
    for (const cursor of [next ?? "", "x", "e30", Buffer.from('{"sort":"risk"}').toString("base64url")]) {
      expect(() => new SessionRanking("risk", 1, 1_000, cursor))
        .to.throw()
        .that.includes({ code: "INVALID_PARAMS" });
    }
  });
});
