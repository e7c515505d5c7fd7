import { expect } from "chai";
import fc from "fast-check";
import { ticketStandings } from "../../../core/action/capability-ticket.ts";
import type { ActionEnvelope } from "../../../core/action/envelope.ts";
import type { Json } from "../../../core/action/json.ts";
import type { Verdict } from "../../../core/action/policy.ts";
import { makeAction } from "../../support/action.ts";
import { rejection } from "../../support/ledger-world.ts";
import { type PackFiles, PackFolders, packOf } from "../../support/policy-pack.ts";

describe("PackPolicy.evaluate(action)", () => {
  const folders = new PackFolders();
  afterEach(() => folders.remove());

  async function judge(files: PackFiles, changed: Partial<ActionEnvelope> = {}): Promise<Verdict> {
    return (await folders.load(files)).policy.evaluate(makeAction(changed));
  }

  const judgeArgs = (rules: string, args: Json): Promise<Verdict> => judge(packOf(rules), { arguments: args });

  describe("when rules are about arguments", () => {
    const rows: readonly [when: string, args: Json, decision: Verdict["decision"]][] = [
      ['args.path.startsWith("/etc/")', { path: "/etc/passwd" }, "block"],
      ['args.path.startsWith("/etc/")', { path: "/srv/etc/passwd" }, "abstain"],
      ["args.limits.size > 10", { limits: { size: 10.5 } }, "block"],
      ["args.limits.size > 10", { limits: { size: 10 } }, "abstain"],
      ['"prod" in args.targets', { targets: ["test", "prod"] }, "block"],
      ['args.edits.exists(edit, edit.path == "/a")', { edits: [{ path: "/b" }, { path: "/a" }] }, "block"],
      ['args.edits.exists(edit, edit.path == "/a")', { edits: [] }, "abstain"],
    ];
    for (const [when, args, decision] of rows) {
      it(`gives ${decision} for ${when} of ${JSON.stringify(args)}`, async () => {
        const verdict = await judgeArgs(`  - { id: sample.a, title: A, decision: block, when: '${when}' }`, args);
        expect(verdict).to.include({ decision }).and.not.to.have.property("error");
      });
    }
  });

  describe("when a rule asks for a ticket", () => {
    const needs = "decision: block, message: no, require_ticket: true";
    const valid = { id: "tkt_1", standing: "valid" } as const;

    async function found(rules: string, ticket?: ActionEnvelope["ticket"], mode?: "shadow"): Promise<Verdict> {
      const { policy } = await folders.load(packOf(rules), {}, mode);
      return policy.evaluate(makeAction(ticket === undefined ? {} : { ticket }));
    }

    it("is lifted by a valid one, and says which", async () => {
      const verdict = await found(`  - { id: sample.a, title: A, ${needs} }`, valid);
      expect(verdict.decision).to.equal("abstain");
      expect(verdict.findings).to.have.length(1);
      expect(verdict.findings[0]).to.include({
        decision: "allow",
        mode: "shadow",
        ticket: "tkt_1",
        message: "ticket `tkt_1` lifts rule `sample.a`",
      });
    });

    for (const standing of ticketStandings.filter((each) => each !== "valid")) {
      it(`decides as it says, and why, for one that is ${standing}`, async () => {
        const verdict = await found(`  - { id: sample.a, title: A, ${needs} }`, { id: "tkt_1", standing });
        expect(verdict.decision).to.equal("block");
        expect(verdict.findings[0]).to.include({ message: `no (needs a capability ticket: ${standing})` });
        expect(verdict.findings[0]).to.not.have.property("ticket");
      });
    }

    it("decides as it says for one without a name, and for none", async () => {
      for (const ticket of [{ id: null, standing: "valid" } as const, undefined]) {
        expect((await found(`  - { id: sample.a, title: A, ${needs} }`, ticket)).decision).to.equal("block");
      }
    });

    it("spends nothing in shadow mode, where an exception lifts it, or where a rule asks for none", async () => {
      const exception = "{ id: e, reason: r, approved_by: ada, expires: 2027-01-01T00:00:00Z }";
      for (const rule of [`${needs}, mode: shadow`, `${needs}, exceptions: [${exception}]`, "decision: block"]) {
        const { findings } = await found(`  - { id: sample.a, title: A, ${rule} }`, valid);
        expect(findings).to.have.length(1);
        expect(findings[0], rule).to.not.have.property("ticket");
      }
    });

    it("can be read by any rule, by its standing", async () => {
      const rules = `  - { id: sample.a, title: A, decision: block, when: 'ticket.standing == "forged" && ticket.id == ""' }`;
      expect((await found(rules, { id: null, standing: "forged" })).decision).to.equal("block");
      expect((await found(rules)).decision).to.equal("abstain");
      expect((await found(rules, valid)).decision).to.equal("abstain");
    });

    it("does not make another rule idle", async () => {
      const rules = `  - { id: sample.a, title: A, ${needs} }
  - { id: sample.b, title: B, decision: review, match: { tool: read_note } }`;
      expect((await found(rules, valid)).decision).to.equal("review");
    });

    it("is stated by cases of the pack's own", async () => {
      const cases = (expected: string): string => `cases:
  - { name: with one, envelope: { ticket: { standing: valid } }, expect: { decision: abstain } }
  - { name: too late, envelope: { ticket: { standing: expired } }, expect: { decision: ${expected} } }
`;
      const files = { ...packOf(`  - { id: sample.a, title: A, ${needs} }`), "tests/a.yaml": cases("block") };
      await folders.load(files);
      const wrong = await rejection(folders.load({ ...files, "tests/a.yaml": cases("abstain") }));
      expect(wrong.message).to.match(/too late/);
    });
  });

  describe("when a rule cannot be evaluated", () => {
    const allow = "  - { id: sample.allow, title: All, decision: allow }\n";
    const conditions: readonly [name: string, keys: string, error: string][] = [
      ["`when` throws", "when: args.missing == 1", "`sample.a`: field not found: missing"],
      ["`unless` throws", "unless: args.missing == 1", "`sample.a`: field not found: missing"],
      [
        "`when` gives no boolean",
        "when: args.text",
        "`sample.a`: expected `args.text` to be true or false, got another value",
      ],
      [
        "an exception throws",
        "exceptions: [{ id: e, reason: r, approved_by: ada, expires: 2027-01-01T00:00:00Z, when: args.missing }]",
        "`sample.a`: field not found: missing",
      ],
      [
        "it would take too long",
        "when: 'args.list.all(a, args.list.exists(b, b < 0))  || args.list.exists(a, args.list.all(b, b >= 0 && a < 0))'",
        "`sample.a`: the expression spent more work than one evaluation may",
      ],
      [
        "a pattern meets too long a text",
        `when: args.big.matches("^x")`,
        "`sample.a`: expected a text of at most 65536 characters for this pattern, got 70000",
      ],
    ];
    const args = { text: "yes", list: Array.from({ length: 3_000 }, (_, index) => index), big: "a".repeat(70_000) };
    for (const [name, keys, error] of conditions) {
      it(`blocks because ${name}`, async () => {
        const verdict = await judgeArgs(`${allow}  - { id: sample.a, title: A, decision: review, ${keys} }`, args);
        expect(verdict).to.include({ decision: "block", error });
        const found = verdict.findings.find((each) => each.rule === "sample.a");
        expect(found).to.include({
          decision: "block",
          message: "rule `sample.a` could not be evaluated, so the action is blocked",
        });
      });
    }

    it("counts the other errors", async () => {
      const rules = ["a", "b", "c"].map(
        (id) => `  - { id: sample.${id}, title: A, decision: allow, when: args.${id}.x }`,
      );
      const verdict = await judgeArgs(rules.join("\n"), {});
      expect(verdict.error).to.equal("`sample.a`: field not found: a (and 2 more)");
      expect(verdict.findings).to.have.length(3);
    });

    it("lets a rule in shadow mode fail, or spend everything, without counting", async () => {
      const hungry =
        "  - { id: sample.hungry, title: A, decision: block, mode: shadow, when: 'args.list.all(a, args.list.all(b, b >= 0))' }\n";
      const failing = "  - { id: sample.failing, title: A, decision: block, mode: shadow, when: args.missing }\n";
      const verdict = await judgeArgs(
        `${hungry}${failing}  - { id: sample.a, title: A, decision: review, when: "size(args.list) == 3000" }`,
        args,
      );
      expect(verdict).to.include({ decision: "review", risk: 40 }).and.not.to.have.property("error");
      expect(verdict.findings.map((each) => [each.rule, each.mode])).to.deep.equal([
        ["sample.a", "enforce"],
        ["sample.hungry", "shadow"],
        ["sample.failing", "shadow"],
      ]);
    });
  });

  describe("when a rule taints", () => {
    const tainting = (more: string): PackFiles =>
      packOf(`  - { id: sample.a, title: A, decision: allow, taints: [web], ${more} }\n`);

    it("taints where it cannot be evaluated as where it holds, and not where it does not hold", async () => {
      const taintsOf = async (when: string): Promise<unknown> =>
        (await judge(tainting(`mode: shadow, when: ${when}`))).findings.map(({ taints }) => taints);
      expect(await taintsOf("args.missing")).to.deep.equal([["web"]]);
      expect(await taintsOf('"true"')).to.deep.equal([["web"]]);
      expect(await taintsOf('"false"')).to.deep.equal([]);
    });

    it("says of which answers it may, in shadow mode too", async () => {
      for (const mode of ["enforce", "shadow"] as const) {
        const { policy } = await folders.load(tainting("match: { phase: output, protocol: model }"), {}, mode);
        expect([policy.taintsOutput?.("model"), policy.taintsOutput?.("mcp")]).to.deep.equal([true, false]);
      }
      const { policy: asking } = await folders.load(tainting("match: { phase: input }"));
      const { policy: reading } = await folders.load(
        packOf("  - { id: sample.a, title: A, decision: allow, match: { phase: output } }\n"),
      );
      expect([asking, reading].map((policy) => policy.taintsOutput?.("mcp"))).to.deep.equal([false, false]);
    });
  });

  it("gives the strictest decision and the highest risk of the rules that hold, in the pack's order", async () => {
    const rules = `  - { id: sample.a, title: A, decision: allow, when: "true", risk: 5 }
  - { id: sample.b, title: B, decision: block, severity: low, when: tool == "read_note" }
  - { id: sample.c, title: C, decision: review, risk: 99, match: { tool: "read_*" } }
  - { id: sample.d, title: D, decision: block, match: { tool: write_note } }
  - { id: sample.e, title: E, decision: block, risk: 100, unless: "true", match: { tool: "*" } }
`;
    const verdict = await judge(packOf(rules));
    expect(verdict).to.include({ decision: "block", risk: 99 });
    expect(verdict.findings.map((each) => each.rule)).to.deep.equal(["sample.a", "sample.b", "sample.c"]);
  });

  describe("when a rule asks for several reviewers", () => {
    const rules = `  - { id: sample.a, title: A, decision: review, approvals: { required: 1 } }
  - { id: sample.b, title: B, decision: review, approvals: { required: 3 }, when: args.n > 5 }`;

    it("says so in its finding, and in no other's", async () => {
      const { findings, decision } = await judgeArgs(rules, { n: 6 });
      expect(decision).to.equal("review");
      expect(findings.map(({ rule, approvals }) => [rule, approvals])).to.deep.equal([
        ["sample.a", undefined],
        ["sample.b", 3],
      ]);
      expect((await judgeArgs(rules, { n: 5 })).findings.map((each) => each.rule)).to.deep.equal(["sample.a"]);
    });

    it("asks nobody where it cannot be evaluated, and blocks", async () => {
      const { decision, findings } = await judgeArgs(rules, {});
      expect(decision).to.equal("block");
      expect(findings[1]).to.include({ rule: "sample.b", decision: "block" }).and.not.to.have.property("approvals");
    });
  });

  it("abstains where no rule holds", async () => {
    const verdict = await judge(packOf('  - { id: sample.a, title: A, decision: block, when: "false" }'));
    expect(verdict).to.deep.equal({ decision: "abstain", findings: [], risk: 0 });
  });

  it("takes a rule without a phase to be about input alone", async () => {
    const files = packOf("  - { id: sample.a, title: A, decision: block }");
    expect((await judge(files, { phase: "list" })).decision).to.equal("abstain");
    expect((await judge(files, { phase: "output", output: {} })).decision).to.equal("abstain");
    expect((await judge(files)).decision).to.equal("block");
  });

  it("judges what came back in phase output", async () => {
    const files = packOf(
      '  - { id: sample.a, title: A, decision: block, match: { phase: output }, when: output.text.contains("KEY") }',
    );
    expect((await judge(files, { phase: "output", output: { text: "a KEY" } })).decision).to.equal("block");
    expect((await judge(files, { phase: "output", output: { text: "nothing" } })).decision).to.equal("abstain");
  });

  describe("when a rule or an exception has an end", () => {
    const exception =
      "exceptions: [{ id: release, reason: planned, approved_by: ada, expires: 2026-06-01T00:00:00Z, when: 'tool == \"read_note\"' }]";
    const files = packOf(
      `  - { id: sample.a, title: A, decision: block, expires: 2026-09-01T00:00:00Z, ${exception} }`,
    );

    it("lifts the rule, and leaves a trace that never counts", async () => {
      const verdict = await judge(files);
      expect(verdict).to.include({ decision: "abstain", risk: 0 });
      const message = "exception `release` lifts rule `sample.a`: planned (approved by ada)";
      expect(verdict.findings).to.deep.equal([
        { rule: "sample.a", decision: "allow", message, severity: "info", risk: 0, mode: "shadow" },
      ]);
    });

    it("does not lift it for another action, nor once the exception has ended", async () => {
      expect((await judge(files, { tool: "write_note" })).decision).to.equal("block");
      expect((await judge(files, { time: "2026-06-01T00:00:00.000Z" })).decision).to.equal("block");
      expect((await judge(files, { time: "2026-05-31T23:59:59.999Z" })).decision).to.equal("abstain");
    });

    it("goes by the action's own time", async () => {
      expect((await judge(files, { tool: "x", time: "2026-08-31T23:59:59.999Z" })).decision).to.equal("block");
      expect((await judge(files, { tool: "x", time: "2026-09-01T00:00:00.000Z" })).decision).to.equal("abstain");
    });
  });

  it("records the `allow` of a pack that only tightens, and does not count it", async () => {
    const rules =
      "  - { id: sample.a, title: A, decision: allow }\n  - { id: sample.b, title: B, decision: review, match: { tool: write } }";
    const files = packOf(rules, "tighten_only: true");
    const verdict = await judge(files);
    expect(verdict).to.include({ decision: "abstain", risk: 0 });
    expect(verdict.findings[0]).to.include({ rule: "sample.a", decision: "allow", mode: "shadow" });
    expect((await judge(files, { tool: "write" })).decision).to.equal("review");
  });

  it("gives the same verdict for the same envelope, always", async () => {
    const rules = `  - { id: sample.a, title: "{{ tool }}", decision: block, when: "leaves(args).exists(l, l.text.matches('b+'))" }
  - { id: sample.b, title: B, decision: review, when: "size(leaves(args)) > 4" }`;
    const { policy } = await folders.load(packOf(rules));
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 3 }), (value) => {
        const action = makeAction({ arguments: { value: JSON.parse(JSON.stringify(value)) as Json } });
        expect(policy.evaluate(action)).to.deep.equal(policy.evaluate(action));
      }),
    );
  });
});
