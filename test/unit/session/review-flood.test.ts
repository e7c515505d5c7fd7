import { expect } from "chai";
import { ReviewFlood } from "../../../core/session/risk-meter.ts";
import { SessionWorld } from "../../support/session-world.ts";

const session = { scope: "session", subject: "s" } as const;

describe("ReviewFlood.count(tenant, session)", () => {
  let world: SessionWorld;
  let nowMs: number;

  beforeEach(async () => {
    world = await SessionWorld.create();
    nowMs = 0;
  });

  afterEach(() => world.remove());

  function flood(reviews: number): ReviewFlood {
    return new ReviewFlood({ killSwitch: world.killSwitch, reviews, windowMs: 1_000, elapsedMs: () => nowMs });
  }

  it("stops a session with the review that is one too many, before it returns", () => {
    const reviews = flood(3);
    for (let review = 0; review < 3; review++) reviews.count("acme", "s");
    expect(world.killSwitch.isKilled("acme", session)).to.equal(false);
    reviews.count("acme", "s");
    expect(world.killSwitch.isKilled("acme", session)).to.equal(true);
    expect(world.killed).to.deep.equal([["s", "review_flood"]]);
  });

  it("counts for each session of each tenant by itself", () => {
    const reviews = flood(1);
    reviews.count("acme", "s");
    reviews.count("acme", "t");
    reviews.count("other", "s");
    expect(world.killed).to.deep.equal([]);
  });

  it("forgets a review when its time is over, and not before", () => {
    const reviews = flood(1);
    reviews.count("acme", "s");
    nowMs = 1_000;
    reviews.count("acme", "s");
    expect(world.killed).to.deep.equal([]);
    nowMs = 1_999;
    reviews.count("acme", "s");
    expect(world.killed).to.deep.equal([["s", "review_flood"]]);
  });

  it("counts anew after a release", async () => {
    const reviews = flood(1);
    reviews.count("acme", "s");
    reviews.count("acme", "s");
    await world.recorded();
    await world.killSwitch.release("acme", session, "principal", "all is well");
    reviews.count("acme", "s");
    expect(world.killSwitch.isKilled("acme", session)).to.equal(false);
    reviews.count("acme", "s");
    expect(world.killSwitch.isKilled("acme", session)).to.equal(true);
  });

  it("stops nobody where it is off", () => {
    const reviews = flood(0);
    for (let review = 0; review < 100; review++) reviews.count("acme", "s");
    expect(world.killed).to.deep.equal([]);
  });

  it("stops a session once, however many reviews come at once", () => {
    const reviews = flood(1);
    for (let review = 0; review < 20; review++) reviews.count("acme", "s");
    expect(world.killed).to.deep.equal([["s", "review_flood"]]);
  });
});
