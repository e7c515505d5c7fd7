import { expect } from "chai";
import { Cancellation } from "../../../core/action/cancellation.ts";

describe("Cancellation", () => {
  it("calls each listener once, with the first reason, and none that was removed", () => {
    const cancellation = new Cancellation();
    const called: unknown[] = [];
    const removed = (): void => void called.push("removed");
    cancellation.addEventListener("abort", () => called.push(cancellation.reason));
    cancellation.addEventListener("abort", removed);
    cancellation.removeEventListener("abort", removed);
    const first = new Error("first");
    expect([cancellation.aborted, cancellation.reason]).to.deep.equal([false, undefined]);
    cancellation.abort(first);
    cancellation.abort(new Error("second"));
    expect(called).to.deep.equal([first]);
    expect([cancellation.aborted, cancellation.reason]).to.deep.equal([true, first]);
  });

  it("gives one signal, which aborts with it, or has where it is asked for later", () => {
    const reason = new Error("over");
    const early = new Cancellation();
    const { signal } = early;
    expect(signal.aborted).to.equal(false);
    early.abort(reason);
    const late = new Cancellation();
    late.abort(reason);
    for (const each of [signal, early.signal, late.signal])
      expect([each.aborted, each.reason]).to.deep.equal([true, reason]);
    expect(early.signal).to.equal(signal);
  });

  it("fires nothing for a listener that came after the abort, as a signal does not", () => {
    const cancellation = new Cancellation();
    cancellation.abort(new Error("over"));
    cancellation.addEventListener("abort", () => expect.fail("called"));
    cancellation.abort(new Error("again"));
  });
});
