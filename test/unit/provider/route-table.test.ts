import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import type { ModelRoute } from "../../../core/config/gateway-config.ts";
import { ModelRouteTable } from "../../../core/provider/fleet.ts";

const sessions: readonly string[] = Array.from({ length: 2_000 }, (_, index) => `session-${index}`);

function route(changed: Partial<ModelRoute> = {}): ModelRoute {
  const steps = ["a", "b", "c"].map((provider) => ({ provider, model: "x", weight: null }));
  return { model: "m", steps, fallback: false, canary: null, ...changed };
}

function weighted(...weights: readonly number[]): ModelRoute {
  return route({ steps: weights.map((weight, index) => ({ provider: `${index}`, model: "x", weight })) });
}

function namesOf(table: ModelRouteTable, session: string): string {
  return table
    .steps("m", session)
    .map(({ provider }) => provider)
    .join("");
}

/** The share of the sessions whose first provider is this one. */
function shareOf(table: ModelRouteTable, provider: string): number {
  return sessions.filter((session) => namesOf(table, session).startsWith(provider)).length / sessions.length;
}

describe("ModelRouteTable.steps(model, session)", () => {
  it("is the first provider alone without fallback, and all in order with it", () => {
    expect(namesOf(new ModelRouteTable([route()]), "s")).to.equal("a");
    expect(namesOf(new ModelRouteTable([route({ fallback: true })]), "s")).to.equal("abc");
  });

  it("shares sessions out by weight, and leads each the same way again", () => {
    const table = new ModelRouteTable([weighted(70, 20, 10)]);
    expect(shareOf(table, "0")).to.be.within(0.66, 0.74);
    expect(shareOf(table, "1")).to.be.within(0.17, 0.23);
    expect(shareOf(table, "2")).to.be.within(0.08, 0.12);
    const again = new ModelRouteTable([weighted(70, 20, 10)]);
    for (const session of sessions) expect(namesOf(again, session)).to.equal(namesOf(table, session));
  });

  it("falls back in the order of the file from whichever weight chose", () => {
    const table = new ModelRouteTable([{ ...weighted(1, 1, 1), fallback: true }]);
    const orders = new Set(sessions.map((session) => namesOf(table, session)));
    expect([...orders].sort()).to.deep.equal(["012", "102", "201"]);
  });

  it("gives the canary its share, and moves nobody else when that changes", () => {
    const of = (percent: number): ModelRouteTable =>
      new ModelRouteTable([{ ...weighted(50, 50), canary: { provider: "canary", model: "y", percent } }]);
    expect(shareOf(of(5), "canary")).to.be.within(0.03, 0.07);
    expect(shareOf(of(100), "canary")).to.equal(1);
    const [few, more] = [of(5), of(20)];
    for (const session of sessions) {
      const [before, after] = [namesOf(few, session), namesOf(more, session)];
      if (after !== "canary") expect(after).to.equal(before);
    }
  });

  it("has the others behind the canary where the route falls back", () => {
    const canary = { provider: "k", model: "y", percent: 100 };
    expect(namesOf(new ModelRouteTable([route({ canary })]), "s")).to.equal("k");
    expect(namesOf(new ModelRouteTable([route({ canary, fallback: true })]), "s")).to.equal("kabc");
  });

  it("knows a model by its exact name alone", () => {
    const table = new ModelRouteTable([route({ model: "large" })]);
    for (const model of ["Large", "large ", "larg", "", "__proto__", "x".repeat(100_000)]) {
      const thrown = errorOf(() => table.steps(model, "s"));
      expect(thrown).to.have.property("code", "MODEL_UNKNOWN");
      expect(thrown.message.length).to.be.below(400);
    }
    expect(errorOf(() => table.steps("larg", "s")).detail).to.equal("got `larg`; did you mean `large`?");
  });
});

function errorOf(step: () => unknown): GatewayError {
  try {
    step();
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error("expected a refusal");
}
