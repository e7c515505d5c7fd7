import { resolve } from "node:path";
import { expect } from "chai";
import { localConfig } from "../../../core/config/local.ts";
import { hashA, loadText } from "./fixture.ts";

const keys = [{ id: "local", tenant: "local", role: "operator", keyHash: hashA }] as const;
const packs = [{ path: "/packs/baseline", mode: "enforce", settings: {}, shadowRules: [] }] as const;

describe("localConfig(options)", () => {
  it("is the default configuration with what it is given, the model `mock`, tools that clients run, and no file", async () => {
    const { source: _, dataDir: __, ...defaults } = await loadText("{}\n");
    expect(
      localConfig({ dataDir: "state", mark: "state.mark", packs, plugins: [], upstreams: [], keys }),
    ).to.deep.equal({
      ...defaults,
      source: null,
      dataDir: resolve("state"),
      state: { enabled: true, mark: resolve("state.mark") },
      resilience: { ...defaults.resilience, backupDir: resolve("backups") },
      keys,
      modelGateway: {
        ...defaults.modelGateway,
        toolPassthrough: "client",
        routes: [
          {
            model: "mock",
            steps: [{ provider: "mock", model: "mock", weight: null }],
            fallback: false,
            canary: null,
          },
        ],
      },
      policy: { ...defaults.policy, packs },
    });
  });

  it("listens on loopback, requires keys, and is frozen", () => {
    const config = localConfig({ dataDir: "state", mark: "state.mark", packs, plugins: [], upstreams: [], keys });
    expect(config.listen.host).to.equal("127.0.0.1");
    expect(config.mcpGateway.requireAuth).to.equal(true);
    expect(Object.isFrozen(config) && Object.isFrozen(config.policy)).to.equal(true);
  });
});
