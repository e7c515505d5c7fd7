import { expect } from "chai";
import fc from "fast-check";
import { GatewayError } from "../../../../core/action/error.ts";
import {
  openKey,
  openRange,
  recordKey,
  recordRange,
  sessionKey,
  sessionOrderKey,
  sessionOrderRange,
  sessionRecordRange,
} from "../../../../core/evidence/record/key-space.ts";

const name = fc.oneof(
  fc.string({ minLength: 1, maxLength: 8 }),
  fc.stringMatching(/^[a/%!0.~-]{1,4}$/),
  fc.string({ unit: "grapheme", minLength: 1, maxLength: 8 }).filter((each) => each.length < 200),
);
const place = fc.record({ tenant: name, session: name, number: fc.nat() });

describe("evidence keys", () => {
  it("never meet: other tenant, session, number or space, other key", () => {
    const seen = new Map<string, string>();
    fc.assert(
      fc.property(place, ({ tenant, session, number }) => {
        for (const [identity, key] of [
          [["record", tenant, number], recordKey(tenant, number)],
          [["disclosure", tenant, number], recordKey(tenant, number, "disclosure")],
          [["open", tenant, session], openKey(tenant, session)],
          [["session", tenant, session], sessionKey(tenant, session)],
          [["order", tenant, number], sessionOrderKey(tenant, number)],
          [["session-record", tenant, session, number], sessionKey(tenant, session, number)],
        ] as const) {
          const text = JSON.stringify(identity);
          expect(seen.get(key) ?? text).to.equal(text);
          seen.set(key, text);
        }
      }),
      { numRuns: 500 },
    );
  });

  it("lie in their own range and in no other tenant's", () => {
    fc.assert(
      fc.property(place, place, (own, other) => {
        const inside = (key: string, range: { gte: string; lt: string }): boolean => key >= range.gte && key < range.lt;
        expect(inside(recordKey(own.tenant, own.number), recordRange(own.tenant))).to.equal(true);
        expect(inside(openKey(own.tenant, own.session), openRange(own.tenant))).to.equal(true);
        expect(inside(sessionOrderKey(own.tenant, own.number), sessionOrderRange(own.tenant))).to.equal(true);
        const key = sessionKey(own.tenant, own.session, own.number);
        expect(inside(key, sessionRecordRange(own.tenant, own.session))).to.equal(true);
        if (own.tenant === other.tenant) return;
        expect(inside(recordKey(own.tenant, own.number), recordRange(other.tenant))).to.equal(false);
        expect(inside(key, sessionRecordRange(other.tenant, own.session))).to.equal(false);
      }),
    );
  });

  it("sort as their numbers do", () => {
    fc.assert(
      fc.property(fc.nat(Number.MAX_SAFE_INTEGER), fc.nat(Number.MAX_SAFE_INTEGER), (a, b) => {
        expect(recordKey("t", a) < recordKey("t", b)).to.equal(a < b);
      }),
    );
  });

  for (const number of [-1, 0.5, Number.NaN, 2 ** 53]) {
    it(`refuses ${number} as a sequence number`, () => {
      expect(() => recordKey("t", number)).to.throw(GatewayError, "expected a sequence number");
    });
  }
});
