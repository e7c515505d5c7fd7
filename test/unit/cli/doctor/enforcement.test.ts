import { expect } from "chai";
import { checkEnforcement } from "../../../../core/cli/doctor/enforcement.ts";

interface Pack {
  readonly path: string;
  readonly mode: "enforce" | "shadow";
  readonly shadowRules: readonly string[];
}

describe("checkEnforcement(target)", () => {
  async function check(...packs: readonly Pack[]): Promise<readonly string[]> {
    const target = { config: { policy: { packs } } } as unknown as Parameters<typeof checkEnforcement>[0];
    return (await checkEnforcement(target)).map(({ status, text, fix }) => `${status}: ${text}; ${fix}`);
  }

  const enforced = (path: string, ...shadowRules: readonly string[]): Pack => ({ path, mode: "enforce", shadowRules });
  const shadow = (path: string): Pack => ({ path, mode: "shadow", shadowRules: [] });

  it("names the packs that only record, as after an adoption, and the command that ends it", async () => {
    expect(
      await check(enforced("/srv/packs/trial"), shadow("/srv/packs/baseline"), shadow("/srv/packs/sql")),
    ).to.deep.equal([
      "warn: `baseline`, `sql` in shadow mode: what they would hold or block runs; " +
        "`gateway adopt --report` shows what that was, and proposes what to enforce",
    ]);
  });

  it("counts the rules that are kept back, and is content where every pack decides", async () => {
    expect(await check(enforced("/srv/packs/baseline", "baseline.write"), enforced("/srv/packs/sql"))).to.deep.equal([
      "ok: `baseline` is enforced but for 1 rule in shadow mode; null",
    ]);
    expect(await check(enforced("/srv/packs/baseline"), enforced("/srv/packs/sql"))).to.deep.equal([
      "ok: 2 packs, each enforced; null",
    ]);
  });
});
