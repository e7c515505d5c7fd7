import { expect } from "chai";
import type { KillTarget } from "../../../core/kill/kill.ts";
import { InFlight } from "../../../core/road/in-flight.ts";
import { reviewer } from "../../support/approval-world.ts";

const ada = reviewer("ada");
const bob = reviewer("bob");
const foreign = reviewer("eve", "operator", "other");

/** Who has what in flight; the names say which. */
const begun = [
  ["ada work 1", ada, "ada-work"],
  ["ada work 2", ada, "ada-work"],
  ["ada play", ada, "ada-play"],
  ["bob work", bob, "bob-work"],
  ["eve work", foreign, "eve-work"],
] as const;

const rows: readonly (readonly [KillTarget, readonly string[]])[] = [
  [{ scope: "session", subject: "ada-work" }, ["ada work 1", "ada work 2"]],
  [{ scope: "session", subject: "eve-work" }, []],
  [{ scope: "principal", subject: ada.id }, ["ada work 1", "ada work 2", "ada play"]],
  [{ scope: "principal", subject: foreign.id }, []],
  [{ scope: "tenant", subject: null }, ["ada work 1", "ada work 2", "ada play", "bob work"]],
  [{ scope: "gateway", subject: null }, begun.map(([name]) => name)],
];

describe("InFlight.cancel(tenant, target, reason)", () => {
  for (const [target, expected] of rows) {
    it(`ends what ${target.scope} ${target.subject?.slice(0, 24) ?? ""} has in flight in its tenant, and no more`, () => {
      const inFlight = new InFlight();
      const reason = new Error("stopped");
      const aborts = begun.map(([name, principal, session]) => {
        const abort = new AbortController();
        inFlight.begin(principal, session, abort);
        return { name, abort };
      });
      inFlight.cancel("acme", target, reason, () => false);
      const ended = aborts.filter(({ abort }) => abort.signal.reason === reason);
      expect(ended.map(({ name }) => name)).to.deep.equal(expected);
    });
  }

  it("leaves alone what is finished", () => {
    const inFlight = new InFlight();
    const [first, second] = [new AbortController(), new AbortController()];
    for (const abort of [first, second]) inFlight.begin(ada, "ada-work", abort);
    inFlight.finish("ada-work", first);
    inFlight.cancel("acme", { scope: "tenant", subject: null }, new Error("stopped"), () => false);
    expect([first, second].map(({ signal }) => signal.aborted)).to.deep.equal([false, true]);
    inFlight.finish("ada-work", second);
    inFlight.finish("ada-work", second);
  });
});
