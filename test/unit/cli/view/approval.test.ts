import { expect } from "chai";
import type { Approval } from "../../../../core/action/approval.ts";
import type { Taint } from "../../../../core/action/session-state.ts";
import type { ApprovalView } from "../../../../core/approval/view.ts";
import { approvalNotice } from "../../../../core/approval/view.ts";
import { approvalLine, renderApproval } from "../../../../core/cli/view/approval.ts";
import { ApprovalWorld } from "../../../support/approval-world.ts";
import { newAction } from "../../../support/ledger-world.ts";

const hostile = "fetch\u202e\u001b[2J\nrisk        0 of 100";
const taint: Taint = { name: "untrusted", target: hostile, tool: hostile, action: "a-1", at: 1_700_000_000_000 };

describe("what reviewers are told of a tainted session", () => {
  let world: ApprovalWorld;
  before(async () => {
    world = await ApprovalWorld.create();
  });
  after(() => world.remove());

  async function hold(taints: readonly Taint[]): Promise<{ approval: Approval; view: ApprovalView }> {
    const state = { risk: 35, actions: 1, reviews: 0, tools: 1, new_tool: true, taints };
    const action = newAction({ session_state: state, arguments: { taints: taints.length } });
    const id = await world.hold(action);
    const approval = await world.stored(id);
    const held = { action, does: [], rules: [] };
    return {
      approval,
      view: { approval, held, withheld: null, changes: null, recent: [], session: null, risk: 40 },
    };
  }

  it("names what it met, where from and when, and nothing that an upstream calls itself is seen as anything else [S51]", async () => {
    const { view } = await hold([taint]);
    const text = renderApproval(view, 0, "");
    expect(text).to.match(/^[\n -~]*$/);
    expect(text).to.include("\nrisk        40 of 100, its session's 35\n");
    const [line] = text.split("\n").filter((each) => each.startsWith("tainted"));
    expect(line).to.match(/^tainted {5}untrusted, at 2023-11-14T22:13:20\.000Z by .*fetch.* on .*fetch.*, action a-1$/);
    expect(text.split("\n").filter((each) => each.startsWith("risk")).length).to.equal(1);
  });

  it("names it on the line of a list and in the notice, and says nothing where it met nothing", async () => {
    const { approval } = await hold([taint, { ...taint, name: "web" }]);
    expect(approvalLine(approval, 0)).to.include("  tainted untrusted, web");
    const page = "https://review.example/{id}#{id}";
    expect(approvalNotice(approval, approval.requested_at, page)?.data).to.deep.include({
      tainted: ["untrusted", "web"],
      review_url: `https://review.example/${approval.id}#${approval.id}`,
    });
    const { approval: clean, view } = await hold([]);
    expect(approvalLine(clean, 0)).to.not.include("tainted");
    expect(renderApproval(view, 0, "")).to.not.include("tainted");
    expect(clean).to.not.have.property("tainted");
    expect(approvalNotice(clean, clean.requested_at, null)?.data).to.deep.include({ tainted: [], review_url: null });
  });
});
