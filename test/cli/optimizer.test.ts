import { join } from "node:path";
import { expect } from "chai";
import { repositoryRoot } from "../check/source-tree.ts";
import { startGateway } from "../support/gateway.ts";
import { until } from "../support/webhook-receiver.ts";

/** What `--trace-opt` prints once the optimized code of a function is there. */
const optimized = /\[completed (?:optimizing|compiling)/;

describe("V8's optimizing compiler", () => {
  it("rests while a gateway starts, and works once it is ready", async () => {
    const gateway = await startGateway({
      config: `
listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }
keys: [{ id: agent, tenant: acme, role: viewer, key_hash: "sha256:${"0".repeat(64)}" }]
policy: { packs: [{ path: "${join(repositoryRoot, "policy-packs/baseline")}" }] }
`,
      launcher: ["sh", "-c", 'exec "$0" --trace-opt "$@"'],
    });
    try {
      const [starting = ""] = gateway.stdout().split('"event":"ready"');
      expect(starting).to.not.match(optimized);
      await until(async () => {
        await (await fetch(`${gateway.metricsUrl}/health`)).text();
        return optimized.test(gateway.stdout());
      }, "optimized code");
    } finally {
      await gateway.stop();
    }
  });
});
