import { expect } from "chai";
import { faultsOf, hashA, hashB, loadText } from "./fixture.ts";

const keys =
  `keys:\n  - {id: agent, tenant: acme, role: viewer, key_hash: '${hashA}'}\n` +
  `  - {id: robot, tenant: globex, role: viewer, key_hash: '${hashB}'}\n`;

function text(...budgets: readonly string[]): string {
  return `${keys}usage:\n  budgets:\n${budgets.map((budget) => `    - {${budget}}\n`).join("")}`;
}

describe("usage", () => {
  it("limits requests and tokens, and has no budget, where the file says nothing", async () => {
    const { usage } = await loadText("log: {}\n");
    expect(usage).to.deep.equal({ requestsPerMinute: 120, tokensPerMinute: 2_000_000, budgets: [] });
  });

  it("takes budgets of tenants and of their keys", async () => {
    const { usage } = await loadText(
      text("tenant: acme, tokens_per_month: 9", "tenant: acme, key: agent, tokens_per_day: 5"),
    );
    expect(usage.budgets).to.deep.equal([
      { tenant: "acme", key: null, tokensPerDay: null, tokensPerMonth: 9 },
      { tenant: "acme", key: "agent", tokensPerDay: 5, tokensPerMonth: null },
    ]);
  });

  const faults: Readonly<Record<string, readonly [budget: string, fault: string]>> = {
    "a budget without a limit": [
      "tenant: acme",
      "6:7: usage.budgets[0]: expected `tokens_per_day` or `tokens_per_month`, got neither",
    ],
    "a budget of nobody's tenant": [
      "tenant: amce, tokens_per_day: 5",
      "6:16: usage.budgets[0].tenant: expected the tenant of a key, got `amce`",
    ],
    "a budget of another tenant's key": [
      "tenant: acme, key: robot, tokens_per_day: 5",
      "6:27: usage.budgets[0].key: expected the id of a key of `acme`, got `robot`",
    ],
    "no tokens at all": [
      "tenant: acme, tokens_per_day: 0",
      "6:38: usage.budgets[0].tokens_per_day: expected an integer from 1 to 1000000000000, got the number `0`",
    ],
  };
  for (const [name, [budget, fault]] of Object.entries(faults)) {
    it(`refuses ${name}`, async () => {
      expect(await faultsOf(text(budget))).to.deep.equal([`gateway.yaml:${fault}`]);
    });
  }

  it("refuses two budgets of one key", async () => {
    const twice = text("tenant: acme, tokens_per_day: 5", "tenant: acme, tokens_per_month: 5");
    expect(await faultsOf(twice)).to.deep.equal([
      "gateway.yaml:7:7: usage.budgets[1]: expected one budget of each tenant and key, got `acme/*` that `usage.budgets[0]` has",
    ]);
  });

  it("refuses a limit of nothing, which could be read as none", async () => {
    expect(await faultsOf("usage: {requests_per_minute: 0}\n")).to.have.length(1);
    expect(await faultsOf("usage: {tokens_per_minute: 0}\n")).to.have.length(1);
  });
});
