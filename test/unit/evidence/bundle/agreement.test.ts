import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { VerifyingKey } from "../../../../core/action/signing-key.ts";
import { evidenceRules } from "../../../../core/compose/evidence-rules.ts";
import { verifyBundle } from "../../../../core/evidence/bundle/verify.ts";
import { type Reason, reasons } from "../../../../core/evidence/record/reason.ts";
import { repositoryRoot } from "../../../check/source-tree.ts";
import type { Presented } from "../../../support/forgery.ts";
import { mutate, seededDice } from "../../../support/mutation.ts";
import { PythonVerifier, type Said } from "../../../support/python-verifier.ts";
import { roundsOf } from "../../../support/rounds.ts";

const rounds = roundsOf(500, 10_000);
const seed = Number(process.env.AGREEMENT_SEED ?? 1);

describe("verify.py and our verifier", function () {
  this.timeout(120_000 + rounds * 40);
  let python: PythonVerifier;
  before(async () => {
    python = await PythonVerifier.start();
  });
  after(() => python.stop());

  it(`say the same of ${rounds} bundles falsified at random (AGREEMENT_SEED=${seed})`, async () => {
    const heard = new Set<Reason>();
    for (let round = 0; round < rounds; round++) {
      const presented = mutate(seededDice(seed * 1_000_003 + round));
      const ours = verify(presented);
      expect(await python.judge(presented), `round ${round}`).to.deep.equal(ours);
      if (ours.first_bad !== null) heard.add(ours.first_bad.reason);
    }
    expect([...heard].every((reason) => reason in reasons)).to.equal(true);
    expect(heard.size, [...heard].join()).to.be.at.least(Math.min(20, rounds / 50));
  });

  it("takes no proof that is too short, whatever root was made for it", async () => {
    // The root over one leaf with nothing beside it, of a tree that is said to have two.
    const script = `
import hashlib, sys
sys.path.insert(0, sys.argv[1])
import verify
leaf = hashlib.sha256(b"\\0" + bytes(32)).digest()
root = hashlib.sha256(b"\\1" + leaf).hexdigest()
print([verify.included(seq, 2, [], "00" * 32, root) for seq in (0, 1)])`;
    const folder = join(repositoryRoot, "sdk/evidence");
    const { stdout } = await promisify(execFile)("python3", ["-B", "-c", script, folder]);
    expect(stdout.trim()).to.equal("[False, False]");
  });

  it("is short enough to be read before it is run", async () => {
    const lines = (await readFile(join(repositoryRoot, "sdk/evidence/verify.py"), "utf8")).split("\n");
    expect(lines.filter((line) => line.length > 120)).to.deep.equal([]);
    expect(lines.length - 1).to.be.at.most(255);
  });
});

function verify({ bundle, keys, witness }: Presented): Said {
  const { checks: _, ...said } = verifyBundle(bundle, {
    keys: keys.map((key) => VerifyingKey.parse(key) as VerifyingKey),
    rules: evidenceRules,
    nowMs: Date.now(),
    ...(witness === undefined ? {} : { witness }),
  });
  return said;
}
