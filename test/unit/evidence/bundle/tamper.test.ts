import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { VerifyingKey } from "../../../../core/action/signing-key.ts";
import { evidenceRules } from "../../../../core/compose/evidence-rules.ts";
import { type BundleReport, verifyBundle } from "../../../../core/evidence/bundle/verify.ts";
import { type EvidenceVerdict, exitCodes, reasons } from "../../../../core/evidence/record/reason.ts";
import { repositoryRoot } from "../../../check/source-tree.ts";
import { bundleOf, formerContentOf, formerWitnessOf, witnessOf } from "../../../support/evidence-world.ts";
import { goodChain, type Presented, present } from "../../../support/forgery.ts";
import { PythonVerifier } from "../../../support/python-verifier.ts";
import { soundStories, tamperCases } from "../../../vector/evidence/tamper.ts";

const verifier = join(repositoryRoot, "sdk", "evidence", "verify.py");

/** What both verifiers say, as far as they must agree. */
type Said = Pick<BundleReport, "verdict" | "exit" | "first_bad" | "warnings" | "records" | "head">;

describe("verification of a bundle", () => {
  let folder: string;
  let python: PythonVerifier;
  before(async () => {
    python = await PythonVerifier.start();
    folder = await mkdtemp(join(tmpdir(), "bundle-"));
  });
  after(async () => {
    await python.stop();
    await rm(folder, { recursive: true });
  });

  async function sayBoth(presented: Presented): Promise<{ readonly ours: Said; readonly theirs: Said }> {
    const { witness, maxAgeSeconds } = presented;
    const isPlain = witness !== undefined && maxAgeSeconds === undefined;
    const theirs = isPlain ? await python.judge({ ...presented, witness }) : await runPython(folder, presented);
    return { ours: verify(presented), theirs };
  }

  const good = bundleOf(goodChain);
  const sound: readonly (readonly [string, Presented, EvidenceVerdict])[] = [
    ["witnessed with a trusted key and the witness's notes", present(good), "witnessed"],
    ["self-attested without a witness", { bundle: good, keys: present(good).keys }, "self-attested"],
    ["self-attested without a trusted key", present(good, { keys: [] }), "self-attested"],
    ["self-attested where the witness kept nothing comparable", present(good, { witness: "" }), "self-attested"],
    [
      "self-attested where the witness went on to a size that the bundle does not prove, before the bundle's own",
      present(good, { witness: witnessOf(goodChain, [1, 10, 15]) }),
      "self-attested",
    ],
  ];
  for (const [what, presented, verdict] of sound) {
    it(`is ${what}`, async () => {
      const { ours, theirs } = await sayBoth(presented);
      expect(ours).to.include({ verdict, exit: exitCodes[verdict], first_bad: null, records: 14 });
      expect(theirs).to.deep.equal(ours);
    });
  }

  it("is judged as before, with a warning, where neither it nor the witness states what there was", async () => {
    const former = bundleOf(goodChain, formerContentOf(goodChain));
    const { ours, theirs } = await sayBoth(present(former, { witness: formerWitnessOf(goodChain, [1, 10, 17]) }));
    expect(ours).to.deep.include({ verdict: "witnessed", first_bad: null, warnings: [{ reason: "no_state", seq: 0 }] });
    expect(theirs).to.deep.equal(ours);
  });

  it("is incomplete where it states nothing, and the witness of its checkpoint does [S81]", async () => {
    const former = bundleOf(goodChain, formerContentOf(goodChain));
    const { ours, theirs } = await sayBoth(present(former));
    expect(ours).to.deep.include({ verdict: "incomplete", first_bad: { reason: "state_missing", file: "states" } });
    expect(theirs).to.deep.equal(ours);
  });

  for (const [what, warnings, make] of soundStories) {
    it(`passes an action that was ${what} [S46]`, async () => {
      const { ours, theirs } = await sayBoth({ ...make(), witness: "" });
      const due = [{ reason: "foreign_witness" }, ...warnings];
      expect(ours).to.deep.include({ verdict: "self-attested", first_bad: null, warnings: due });
      expect(theirs).to.deep.equal(ours);
    });
  }

  it("sees through at least 60 falsifications", () => {
    expect(tamperCases.length).to.be.at.least(60);
    expect(new Set(tamperCases.map(({ name }) => name)).size).to.equal(tamperCases.length);
  });

  for (const { name, reason, file, seq, make } of tamperCases) {
    it(`says ${reason} of ${name}`, async () => {
      const { ours, theirs } = await sayBoth(make());
      const { grade } = reasons[reason];
      expect(ours.first_bad).to.deep.equal({ reason, file, ...(seq === undefined ? {} : { seq }) });
      expect([ours.verdict, ours.exit]).to.deep.equal([grade, exitCodes[grade as EvidenceVerdict]]);
      expect({ ...theirs, records: 0, head: "" }).to.deep.equal({ ...ours, records: 0, head: "" });
    });
  }
});

function verify({ bundle, keys, witness, maxAgeSeconds }: Presented): Said {
  const { checks: _, ...said } = verifyBundle(bundle, {
    keys: keys.map((key) => VerifyingKey.parse(key) as VerifyingKey),
    rules: evidenceRules,
    nowMs: Date.now(),
    ...(witness === undefined ? {} : { witness }),
    ...(maxAgeSeconds === undefined ? {} : { maxAgeMs: maxAgeSeconds * 1000 }),
  });
  return said;
}

/** Runs the program itself: with options that the one process does not know, and for its exit code. */
async function runPython(folder: string, { bundle, keys, witness, maxAgeSeconds }: Presented): Promise<Said> {
  await writeFile(join(folder, "bundle.jsonl"), bundle);
  await writeFile(join(folder, "notes"), witness ?? "");
  const args = [
    "bundle.jsonl",
    ...keys.flatMap((key) => ["--key", key]),
    ...(witness === undefined ? [] : ["--witness", "notes"]),
    ...(maxAgeSeconds === undefined ? [] : ["--max-age", String(maxAgeSeconds)]),
  ];
  return new Promise((resolve, reject) => {
    const child = execFile(
      "python3",
      [verifier, ...args],
      { cwd: folder, timeout: 60_000 },
      (_error, stdout, stderr) => {
        const said = stdout === "" ? undefined : (JSON.parse(stdout) as Said);
        if (said === undefined || said.exit !== child.exitCode) reject(new Error(`verify.py: ${stderr}`));
        else resolve(said);
      },
    );
  });
}
