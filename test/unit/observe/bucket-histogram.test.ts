import { expect } from "chai";
import fc from "fast-check";
import { Histogram, Registry } from "prom-client";
import { MetricRegistry } from "../../../core/observe/metric-registry.ts";

const bounds = [0.00001, 0.5, 1, 10];

describe("BucketHistogram", () => {
  it("is printed and read as prom-client's own histogram of the same observations", async () => {
    const label = fc.constantFrom("input", "output", "list");
    const values = fc.array(
      fc.tuple(fc.oneof(fc.constantFrom(...bounds), fc.double({ noNaN: true, min: 0, max: 20 })), label, label),
    );
    await fc.assert(
      fc.asyncProperty(values, async (observations) => {
        const [own, theirs] = [new MetricRegistry(), new Registry()];
        const names = { none: [], one: ["phase"], two: ["phase", "port"] };
        for (const [name, labelNames] of Object.entries(names)) {
          const mine = own.histogram(name, "help", bounds, ...labelNames);
          const oracle = new Histogram({ name, help: "help", buckets: [...bounds], labelNames, registers: [theirs] });
          for (const [value, ...labels] of observations) {
            const used = labels.slice(0, labelNames.length);
            mine.observe(value, ...used);
            oracle.observe(Object.fromEntries(labelNames.map((each, at) => [each, used[at] as string])), value);
          }
        }
        expect(await own.metrics()).to.equal(await theirs.metrics());
        const read = (metrics: Awaited<ReturnType<Registry["getMetricsAsJSON"]>>): unknown =>
          metrics.map(({ name, help, type, values: all }) => ({
            name,
            help,
            type,
            values: all.map(({ labels, value, ...rest }) => ({
              labels,
              value,
              name: (rest as { metricName?: string }).metricName,
            })),
          }));
        expect(read(await own.getMetricsAsJSON())).to.deep.equal(read(await theirs.getMetricsAsJSON()));
      }),
      { numRuns: 50 },
    );
  });

  it("refuses what is no finite number", () => {
    const histogram = new MetricRegistry().histogram("seconds", "help", bounds);
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => histogram.observe(value)).to.throw(TypeError, "seconds: expected a finite number");
    }
  });
});
