import { expect } from "chai";
import { evidenceRules } from "../../../../core/compose/evidence-rules.ts";
import { SessionExport } from "../../../../core/evidence/bundle/session-export.ts";
import { type BundleReport, verifyBundle } from "../../../../core/evidence/bundle/verify.ts";
import { KeyFolder } from "../../../../core/evidence/key/key-folder.ts";
import { renderMarkdown } from "../../../../core/evidence/report/markdown.ts";
import { buildReport } from "../../../../core/evidence/report/model.ts";
import { ApprovalWorld, reviewer } from "../../../support/approval-world.ts";
import { newAction } from "../../../support/ledger-world.ts";
import { PythonVerifier } from "../../../support/python-verifier.ts";

const call = (path: string): ReturnType<typeof newAction> => newAction({ arguments: { path } });
const request = { session: newAction().session.id, by: "principal-v1-auditor", disclose: true, redact: [] };

describe("the evidence of approvals, as the gateway writes it", () => {
  let world: ApprovalWorld;
  let python: PythonVerifier;

  before(async () => {
    python = await PythonVerifier.start();
  });
  after(() => python.stop());
  beforeEach(async () => {
    world = await ApprovalWorld.create({ rule: { allowSelfReview: false, allowBreakGlass: true } });
  });
  afterEach(() => world.remove());

  function exporter(): SessionExport {
    const { clock, keysPath, ledger, store } = world.ledger;
    const keys = new KeyFolder(keysPath, () => new Uint8Array(32));
    return new SessionExport({ store, keys, ledger, clock: clock.now });
  }

  /** What all three verifiers make of it: both of a bundle, which must agree, and that of the data folder. */
  async function verify(): Promise<Omit<BundleReport, "checks">> {
    expect(await world.ledger.ledger.verify("acme")).to.include({ ok: true });
    const bundle = await exporter().bundle("acme", request);
    const { checks: _, ...ours } = verifyBundle(bundle, {
      keys: [],
      rules: evidenceRules,
      nowMs: world.ledger.clock.nowMs,
    });
    expect(await python.judge({ bundle, keys: [] })).to.deep.equal(ours);
    return ours;
  }

  it("verifies where a quorum approved, the action passed, and another was denied [R6-2]", async () => {
    const [asked, repeated] = [call("a"), call("a")];
    const { approval } = await world.attempt(asked, world.evaluate(asked, 2));
    const id = approval?.id ?? "";
    await world.approve(id);
    await world.approvals.review.approve(id, reviewer("rob"), { scope: "exact", comment: "as agreed" });
    expect((await world.attempt(repeated, world.evaluate(repeated, 2))).permitted).to.equal(true);
    await world.approvals.review.deny(await world.hold(call("b")), reviewer("rita"), "not this one");
    expect(await verify()).to.deep.include({ verdict: "self-attested", first_bad: null, warnings: [] });
    const page = renderMarkdown(buildReport(await exporter().collect("acme", "evidence.report", request)));
    expect(page)
      .to.include("Endorsed by")
      .and.include("as agreed")
      .and.include("not this one")
      .and.include("Used by record");
  });

  it("verifies where an approval in scope `task` let other values pass", async () => {
    await world.approvals.review.approve(await world.hold(call("a")), reviewer("rita"), { scope: "task" });
    expect((await world.attempt(call("z"))).permitted).to.equal(true);
    expect(await verify()).to.deep.include({ verdict: "self-attested", first_bad: null, warnings: [] });
  });

  it("warns of a break-glass use until its post-mortem is written [R5-18]", async () => {
    const admin = reviewer("ada", "admin");
    const id = await world.hold(call("a"));
    await world.approvals.review.approve(id, admin, { scope: "exact", breakGlass: "pager" });
    expect((await world.attempt(call("a"))).permitted).to.equal(true);
    expect((await verify()).warnings).to.deep.equal([{ reason: "post_mortem_missing", seq: 2 }]);
    await world.approvals.review.closeBreakGlass(id, admin, "the disk was full");
    expect((await verify()).warnings).to.deep.equal([]);
  });
});
