import { expect } from "chai";
import type { BundledRecord } from "../../../../core/evidence/bundle/bundle-line.ts";
import { renderHtml } from "../../../../core/evidence/report/html.ts";
import { renderMarkdown } from "../../../../core/evidence/report/markdown.ts";
import { buildReport, type SessionReport } from "../../../../core/evidence/report/model.ts";
import { approvalEvent, contentOf, type Draft, goodDrafts, placeChain } from "../../../support/evidence-world.ts";

/** The report of the world's session, after `edit`. Its action `c` is held in record 8, and `d` uses the approval in 11. */
function report(edit: (drafts: Draft[]) => Draft[] = (drafts) => drafts): SessionReport {
  const chain = placeChain({ drafts: edit(goodDrafts()) });
  return buildReport({ content: contentOf(chain), records: chain as unknown as BundledRecord[] });
}

/** What a page says, as a reader sees it. */
function linesOf(page: string): string {
  return page.replaceAll(/\\(?=[^a-zA-Z0-9\s])/g, "");
}

describe("the report of a session with an approval", () => {
  const told = [
    "Held as apr_1 by record 8",
    "Endorsed by principal-v1-3 at 2025-03-01T09:00:09.000Z (record 9): looks <b>fine</b>",
    "Approved by principal-v1-2 at 2025-03-01T09:00:10.000Z (record 10), for exactly this action",
    "Used by record 11",
  ];

  it("tells its story in Markdown, at the action that was held and at the one that used it", () => {
    const page = linesOf(renderMarkdown(report()));
    const story = ["- Approval", ...told.map((line) => `  - ${line}`)].join("\n");
    expect(page.split(story)).to.have.length(3);
  });

  it("tells it in HTML, and lets no comment become a tag", () => {
    const page = renderHtml(report());
    expect(page).to.include("<li>Used by record 11</li></ul>");
    expect(page).to.include("(record 9): looks &lt;b&gt;fine&lt;/b&gt;</li>");
    expect(page).to.not.include("<b>fine");
  });

  it("tells it in JSON", () => {
    const approval = report().actions.find(({ seq }) => seq === 11)?.approval;
    expect(approval).to.include({ id: "apr_1", held: 8, used: 11, break_glass: null });
    expect(approval?.steps.map(({ event, by, scope, text }) => [event, by, scope, text])).to.deep.equal([
      ["endorsed", "principal-v1-3", null, "looks <b>fine</b>"],
      ["approved", "principal-v1-2", "exact", null],
    ]);
  });

  it("counts the action that used it among those carried out, and not among those held", () => {
    const { actions, summary } = report();
    const carriedOut = actions.filter(({ dispatched }) => dispatched).length;
    expect(summary).to.include({
      actions: 7,
      allow: 3,
      review: 2,
      block: 2,
      success: 2,
      error: 1,
      unknown: 1,
      open: 0,
    });
    expect(carriedOut).to.equal(4);
    expect(linesOf(renderMarkdown(report()))).to.include(
      "7 actions attempted: 3 allowed, 1 passed with an approval, 1 held for review, 2 blocked. " +
        "Of the 4 carried out, 2 succeeded, 1 ended in an error, 1 ended unknown.",
    );
  });

  it("says who denied it and why, and that nobody used it", () => {
    const denied = approvalEvent("denied", "d", { reviewer: "principal-v1-2", comment: "not today" });
    const page = linesOf(renderMarkdown(report((drafts) => [...drafts.slice(0, 10), denied])));
    expect(page).to.include(
      "- Denied by principal-v1-2 at 2025-03-01T09:00:10.000Z (record 10): not today\n  - Not used\n",
    );
  });

  const glass = approvalEvent("approved", "d", { break_glass: { reason: "pager <1>" }, reviewer: "principal-v1-2" });

  it("says why the glass was broken, and that its post-mortem is still open", () => {
    const page = renderHtml(report((drafts) => drafts.with(10, glass)));
    expect(page).to.include("<li>Break-glass: pager &lt;1&gt;</li><li>Post-mortem still open</li>");
  });

  it("says who accounted for it, and how", () => {
    const account = approvalEvent("post_mortem", "d", { by: "principal-v1-2", text: "disk full" });
    const page = renderHtml(report((drafts) => drafts.with(10, glass).toSpliced(13, 0, account)));
    expect(page).to.include(
      "Post-mortem written by principal-v1-2 at 2025-03-01T09:00:13.000Z (record 13): disk full</li>",
    );
    expect(page).to.not.include("still open");
  });
});
