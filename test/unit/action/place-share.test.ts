import { expect } from "chai";
import { PlaceShare, shareError, shareOf } from "../../../core/action/place-share.ts";

const key = (id: string, tenant: string) => ({ id, tenant });
const [a, b, c, d] = [key("a", "acme"), key("b", "acme"), key("c", "acme"), key("d", "other")];

describe("PlaceShare", () => {
  it("gives a key its share, a tenant its own, and everybody together all there is", () => {
    const places = new PlaceShare(8, { keySharePercent: 25, tenantSharePercent: 50 });
    expect(places.limits).to.deep.equal({ key: 2, tenant: 4, gateway: 8 });
    for (const holder of [a, a]) {
      expect(places.usedUp(holder)).to.equal(undefined);
      places.take(holder);
    }
    expect(places.usedUp(a)).to.equal("key");
    for (const holder of [b, b]) places.take(holder);
    expect([c, d].map((holder) => places.usedUp(holder))).to.deep.equal(["tenant", undefined]);
    for (let count = 0; count < 4; count++) places.take(null);
    expect([d, null].map((holder) => places.usedUp(holder))).to.deep.equal(["gateway", "gateway"]);
    places.release(a);
    expect([a, c, d, null].map((holder) => places.usedUp(holder))).to.deep.equal(Array(4).fill(undefined));
  });

  it("gives everybody one place at least, and knows no limit in a share of everything", () => {
    expect([shareOf(1, 25), shareOf(3, 1), shareOf(7, 50)]).to.deep.equal([1, 1, 3]);
    const places = new PlaceShare(1, { keySharePercent: 25, tenantSharePercent: 50 });
    places.take(a);
    expect(places.usedUp(a)).to.equal("gateway");
  });

  it("says which limit it was, and when to come back", () => {
    const { message, data } = shareError("SESSION_LIMIT", "open sessions", { scope: "tenant", limit: 4, retryS: 9 });
    expect(message).to.equal("too many sessions: expected at most 4 open sessions of one tenant; try again in 9 s");
    expect(data).to.deep.equal({ reason: "tenant", limit: 4, retry_after_s: 9 });
  });
});
