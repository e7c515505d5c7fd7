import { expect } from "chai";
import { faultsOf, type PackFiles, PackFolders, packOf } from "../../support/policy-pack.ts";

describe("parseRule(node)", () => {
  const folders = new PackFolders();
  afterEach(() => folders.remove());

  const rows: readonly [name: string, files: PackFiles, faults: readonly string[]][] = [
    [
      "a decision that is none",
      packOf("  - { id: sample.a, title: A, decision: deny }"),
      ["rules/a.yaml:2:41: rules[0].decision: expected `allow`, `review` or `block`, got `deny`"],
    ],
    [
      "an id of another namespace",
      packOf("  - { id: other.a, title: A, decision: allow }"),
      ["rules/a.yaml:2:11: expected `id` to begin with the pack's namespace `sample.`, got `other.a`"],
    ],
    [
      "a risk beyond 100",
      packOf("  - { id: sample.a, title: A, decision: allow, risk: 101 }"),
      ["rules/a.yaml:2:54: rules[0].risk: expected an integer from 0 to 100, got the number `101`"],
    ],
    [
      "a quorum of nobody",
      packOf("  - { id: sample.a, title: A, decision: review, approvals: { required: 0 } }"),
      ["rules/a.yaml:2:72: rules[0].approvals.required: expected an integer from 1 to 10, got the number `0`"],
    ],
    [
      "a quorum beyond ten",
      packOf("  - { id: sample.a, title: A, decision: review, approvals: { required: 11 } }"),
      ["rules/a.yaml:2:72: rules[0].approvals.required: expected an integer from 1 to 10, got the number `11`"],
    ],
    [
      "a quorum that is no whole number",
      packOf("  - { id: sample.a, title: A, decision: review, approvals: { required: 1.5 } }"),
      ["rules/a.yaml:2:72: rules[0].approvals.required: expected an integer from 1 to 10, got the number `1.5`"],
    ],
    [
      "a quorum without its number",
      packOf("  - { id: sample.a, title: A, decision: review, approvals: {} }"),
      ["rules/a.yaml:2:60: rules[0].approvals.required: expected this key, got nothing"],
    ],
    [
      "a quorum that is no mapping",
      packOf("  - { id: sample.a, title: A, decision: review, approvals: 2 }"),
      ["rules/a.yaml:2:60: rules[0].approvals: expected a mapping, got the number `2`"],
    ],
    [
      "an unknown member of a quorum",
      packOf("  - { id: sample.a, title: A, decision: review, approvals: { required: 2, requird: 3 } }"),
      ["rules/a.yaml:2:75: rules[0].approvals.requird: unknown key, did you mean `required`?"],
    ],
    [
      "a quorum on a rule that blocks",
      packOf("  - { id: sample.a, title: A, decision: block, approvals: { required: 2 } }"),
      ["rules/a.yaml:2:59: expected `approvals` only on a rule that decides review"],
    ],
    [
      "a ticket for what is allowed anyway",
      packOf("  - { id: sample.a, title: A, decision: allow, require_ticket: true }"),
      ["rules/a.yaml:2:64: expected `require_ticket` only on a rule that reviews or blocks"],
    ],
    [
      "a ticket for what is seen or answered",
      packOf(
        "  - { id: sample.a, title: A, decision: block, match: { phase: [input, output] }, require_ticket: true }",
      ),
      ["rules/a.yaml:2:99: expected `require_ticket` only on a rule of phase `input`"],
    ],
    [
      "a ticket that is neither required nor not",
      packOf("  - { id: sample.a, title: A, decision: block, require_ticket: 1 }"),
      ["rules/a.yaml:2:64: rules[0].require_ticket: expected `true` or `false`, got the number `1`"],
    ],
    [
      "a conditional rule that asks for no more reviewers than one that always holds",
      packOf(
        "  - { id: sample.a, title: A, decision: review, approvals: { required: 2 } }\n  - { id: sample.b, title: B, decision: review, when: 'true', approvals: { required: 2 } }",
      ),
      ["rules/a.yaml:3:5: rule `sample.b` is shadowed by `sample.a`, which always decides review"],
    ],
    [
      "a title with a hidden character",
      packOf('  - { id: sample.a, title: "A\\u202e", decision: allow }'),
      ["rules/a.yaml:2:28: rules[0].title: expected printable text of 1 to 160 characters, got `A\\u{202e}`"],
    ],
    [
      "a match key that is none",
      packOf("  - { id: sample.a, title: A, decision: allow, match: { tools: a } }"),
      ["rules/a.yaml:2:57: rules[0].match.tools: unknown key, did you mean `tool`?"],
    ],
    [
      "a capability that is none",
      packOf("  - { id: sample.a, title: A, decision: allow, match: { capability: raed } }"),
      [
        "rules/a.yaml:2:69: `raed` matches no capability (read, generate, network, write, execute, approve, deploy, delete): the rule is dead; did you mean `read`?",
      ],
    ],
    [
      "a match that excludes what it names",
      packOf("  - { id: sample.a, title: A, decision: allow, match: { capability: [read, '!re*'] } }"),
      ["rules/a.yaml:2:69: `capability` excludes all that it names: the rule is dead"],
    ],
    [
      "an excluded capability that is none",
      packOf("  - { id: sample.a, title: A, decision: allow, match: { capability: '!raed' } }"),
      [
        "rules/a.yaml:2:69: `!raed` matches no capability (read, generate, network, write, execute, approve, deploy, delete): the rule is dead; did you mean `read`?",
      ],
    ],
    [
      "a match with nothing",
      packOf("  - { id: sample.a, title: A, decision: allow, match: { tool: [] } }"),
      ["rules/a.yaml:2:63: expected `tool` to name something, got an empty list: the rule is dead"],
    ],
    [
      "an expired rule",
      packOf("  - { id: sample.a, title: A, decision: allow, expires: 2025-01-01T00:00:00Z }"),
      ["rules/a.yaml:2:5: rule `sample.a` expired at 2025-01-01T00:00:00.000Z: the rule is dead"],
    ],
    [
      "a duplicate id",
      packOf(
        "  - { id: sample.a, title: A, decision: allow }\n  - { id: sample.a, title: B, decision: block, match: { tool: b } }",
      ),
      ["rules/a.yaml:3:5: duplicate rule id `sample.a`, first at rules/a.yaml:2"],
    ],
    [
      "a repeated rule",
      packOf(
        "  - { id: sample.a, title: A, decision: allow, when: 'true' }\n  - { id: sample.b, title: B, decision: allow, when: 'true' }",
      ),
      ["rules/a.yaml:3:5: rule `sample.b` repeats `sample.a`"],
    ],
    [
      "a shadowed rule",
      packOf(
        "  - { id: sample.a, title: A, decision: block, match: { tool: [x, y] } }\n  - { id: sample.b, title: B, decision: review, match: { tool: [y, x] } }",
      ),
      ["rules/a.yaml:3:5: rule `sample.b` is shadowed by `sample.a`, which always decides block"],
    ],
    [
      "a condition of another type",
      packOf("  - { id: sample.a, title: A, decision: allow, when: size(tool) }"),
      ["rules/a.yaml:2:54: expected `when` to be true or false, got an expression of type int"],
    ],
    [
      "a fault inside a block of text",
      packOf(
        "  - id: sample.a\n    title: A\n    decision: allow\n    when: |\n      tool == 'a'\n        || tol == 'b'\n",
      ),
      ["rules/a.yaml:7:12: unknown variable `tol`; did you mean `tool`?"],
    ],
    [
      "a fault in a message",
      packOf("  - { id: sample.a, title: A, decision: allow, message: 'x {{ tol }}' }"),
      ["rules/a.yaml:2:63: unknown variable `tol`; did you mean `tool`?"],
    ],
    [
      "a message that does not end",
      packOf("  - { id: sample.a, title: A, decision: allow, message: 'x {{ tool' }"),
      ["rules/a.yaml:2:60: expected `}}` after `{{`, got the end of the message"],
    ],
    [
      "an exception without an end",
      packOf("  - { id: sample.a, title: A, decision: allow, exceptions: [{ id: e, reason: r, approved_by: b }] }"),
      ["rules/a.yaml:2:61: rules[0].exceptions[0].expires: expected this key, got nothing"],
    ],
    [
      "a kind of facts that there is not",
      packOf("  - { id: sample.a, title: A, decision: allow, match: { fact: shel } }"),
      [
        "rules/a.yaml:2:63: `shel` matches no fact (shell, git, sql, url, path, address, calls, none): the rule is dead; did you mean `shell`?",
      ],
    ],
    [
      "an excluded kind of facts",
      packOf("  - { id: sample.a, title: A, decision: allow, match: { fact: '!shell' } }"),
      ["rules/a.yaml:2:63: expected kinds of facts, got an excluded one: write `unless: has(facts.…)`"],
    ],
    [
      "an effect that there is not",
      packOf("  - { id: sample.a, title: A, decision: allow, match: { effect: destroy } }"),
      [
        "rules/a.yaml:2:65: `destroy` matches no effect (read, write, delete, execute, network, unknown): the rule is dead",
      ],
    ],
    [
      "facts that may be absent",
      packOf(`  - id: sample.a
    title: A
    decision: allow
    match: { fact: [shell, git] }
    when: facts.shell.parsed`),
      [
        "rules/a.yaml:6:16: `facts.shell` may be absent: add `fact: shell` to the rule's `match`, or guard it with `has(facts.shell)`",
      ],
    ],
    [
      "facts of another kind in the message",
      packOf(`  - id: sample.a
    title: A
    decision: review
    match: { fact: shell }
    message: "{{ facts.git.size() }} of git"`),
      [
        "rules/a.yaml:6:23: `facts.git` may be absent: add `fact: git` to the rule's `match`, or guard it with `has(facts.git)`",
      ],
    ],
    [
      "an unknown key",
      packOf("  - { id: sample.a, title: A, acton: x, decision: allow }"),
      [
        "rules/a.yaml:2:31: rules[0].acton: unknown key, expected one of `id`, `title`, `decision`, `severity`, `risk`, `approvals`, `session_risk`, `taints`, `require_ticket`, `match`, `when`, `unless`, `message`, `remediation`, `mode`, `references`, `expires`, `exceptions`",
      ],
    ],
  ];
  for (const [name, files, expected] of rows) {
    it(`refuses ${name} and says where`, async () => {
      expect(await faultsOf(folders, files)).to.have.members(expected);
    });
  }

  it("takes facts for granted where `match` names their kind, or a condition asks for them", async () => {
    for (const rule of [
      "match: { fact: shell }, when: facts.shell.parsed, unless: 'facts.shell.dynamic', message: '{{ facts.shell.effect }}'",
      "when: 'has(facts.shell)', unless: facts.shell.parsed, message: '{{ facts.shell.effect }}'",
      "when: 'has(facts.shell) && tool == \"a\"', exceptions: [{ id: e, reason: r, approved_by: b, expires: 2030-01-01T00:00:00Z, when: facts.shell.parsed }]",
    ]) {
      const files = packOf(`  - { id: sample.a, title: A, decision: allow, ${rule} }`);
      expect((await folders.load(files)).ruleCount, rule).to.equal(1);
    }
  });

  it("judges the facts that a case of the pack's tests gives", async () => {
    const rules = packOf(`  - id: sample.push
    title: A push
    decision: block
    match: { fact: git, effect: network }
    when: facts.git.exists(run, run.force)`);
    const git = (force: boolean): string => `[{ subcommand: push, remotes: [evil.example], force: ${force} }]`;
    const cases = (force: boolean): string => `cases:
  - name: a push by force is blocked
    envelope: { facts: { effect: network, git: ${git(force)} } }
    expect: { decision: block, rules: [sample.push] }
  - name: another effect is none of its business
    envelope: { facts: { effect: read, git: ${git(true)} } }
    expect: { decision: abstain }
`;
    expect((await folders.load({ ...rules, "tests/a.yaml": cases(true) })).ruleCount).to.equal(1);
    expect((await faultsOf(folders, { ...rules, "tests/a.yaml": cases(false) })).join()).to.contain(
      "expected block, got abstain",
    );
  });
});
