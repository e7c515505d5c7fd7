import { expect } from "chai";
import type { ActiveRule, Policy } from "../../../core/action/policy.ts";
import { PolicyChain } from "../../../core/policy/chain.ts";
import { policyHandlers } from "../../../core/policy/operation.ts";
import { rejection } from "../../support/ledger-world.ts";
import { PackFolders, packOf } from "../../support/policy-pack.ts";

const rules = `  - { id: sample.a, title: " A ", decision: block, references: [OWASP-ASI02, CWE-89], expires: 2027-01-01T00:00:00Z }
  - { id: sample.b, title: B, decision: review, mode: shadow }
`;

describe("PolicyChain.rules", () => {
  const folders = new PackFolders();
  afterEach(() => folders.remove());

  async function rulesOf(mode: "enforce" | "shadow"): Promise<readonly ActiveRule[]> {
    const { policy } = await folders.load(packOf(rules), {}, mode);
    const silent: Policy = {
      ref: { kind: "plugin", name: "p", version: "1.0.0", digest: "sha256:00", signer: null },
      mode: "enforce",
      evaluate: () => ({ decision: "abstain", findings: [], risk: 0 }),
    };
    const options = { defaultDecision: "block", deadlineMs: 20, newId: () => "id", elapsedMs: () => 0 } as const;
    return new PolicyChain({ policies: [silent, policy], ...options }).rules;
  }

  it("lists what packs say, with what it is about, and nothing of policies without a list", async () => {
    expect(await rulesOf("enforce")).to.deep.equal([
      {
        ...{ rule: "sample.a", policy: "sample", title: "A", decision: "block", severity: "high", mode: "enforce" },
        ...{ references: ["OWASP-ASI02", "CWE-89"], expires: "2027-01-01T00:00:00.000Z" },
      },
      {
        ...{ rule: "sample.b", policy: "sample", title: "B", decision: "review", severity: "medium", mode: "shadow" },
        ...{ references: [], expires: null },
      },
    ]);
  });

  it("says of every rule of a pack in shadow mode that it is so", async () => {
    expect((await rulesOf("shadow")).map(({ mode }) => mode)).to.deep.equal(["shadow", "shadow"]);
  });
});

describe("listRules", () => {
  const all = Array.from({ length: 5 }, (_, at) => ({ rule: `r.${at}` }) as ActiveRule);
  const handlers = policyHandlers({
    policies: () => [],
    rules: () => all,
    shadowLog: { list: () => ({ items: [], next: null }) },
  });
  const list = (limit: number, cursor?: string): unknown =>
    handlers.listRules({} as never, { query: { limit, ...(cursor === undefined ? {} : { cursor }) } } as never);

  it("goes through all of them, page by page, and ends", () => {
    expect(list(2)).to.deep.equal({ items: all.slice(0, 2), next: "2" });
    expect(list(2, "2")).to.deep.equal({ items: all.slice(2, 4), next: "4" });
    expect(list(2, "4")).to.deep.equal({ items: all.slice(4), next: null });
    expect(list(5)).to.deep.equal({ items: all, next: null });
    expect(list(2, "99")).to.deep.equal({ items: [], next: null });
  });

  it("refuses a cursor that is none of its own", async () => {
    for (const cursor of ["-1", "1e3", "r.2", "9999999999"]) {
      const refused = await rejection(Promise.resolve().then(() => list(2, cursor)));
      expect(refused).to.include({ code: "INVALID_PARAMS" });
    }
  });
});
