import { expect } from "chai";
import { Metrics } from "../../core/observe/metrics.ts";
import { panelExpressions, ruleExpressions } from "../support/monitoring.ts";
import { selectionsOf } from "../support/promql.ts";

/** Of Prometheus, not of what it scrapes. */
const prometheus = "up";

describe("alert rules and dashboard", () => {
  let metrics: ReadonlySet<string>;

  before(async () => {
    const text = await new Metrics("").text();
    metrics = new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name = ""]) => name));
  });

  /** The metrics that expressions read, histograms by their own name. */
  function readBy(expressions: ReturnType<typeof panelExpressions>): readonly string[] {
    const named = expressions.flatMap(({ expr }) => selectionsOf(expr).map(({ metric }) => metric));
    return [...new Set(named)].map((name) => {
      const family = name.replace(/_(?:bucket|sum|count)$/, "");
      return metrics.has(family) ? family : name;
    });
  }

  it("read metrics that there are", () => {
    const read = readBy([...ruleExpressions(), ...panelExpressions()]);
    expect(read.filter((name) => name !== prometheus && !metrics.has(name))).to.deep.equal([]);
  });

  it("leave none of ours without a panel: `core/observe/grafana/gateway.json`", () => {
    const shown = new Set(readBy(panelExpressions()));
    const ours = [...metrics].filter((name) => name.startsWith("gateway_"));
    expect(ours.filter((name) => !shown.has(name))).to.deep.equal([]);
  });
});
