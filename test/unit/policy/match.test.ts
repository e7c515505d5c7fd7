import { expect } from "chai";
import fc from "fast-check";
import type { ActionFacts } from "../../../core/action/action-fact.ts";
import type { ActionEnvelope } from "../../../core/action/envelope.ts";
import { parseDocument } from "../../../core/config/document.ts";
import { FaultList } from "../../../core/config/fault.ts";
import { type Match, matches, mismatches, parseMatch } from "../../../core/policy/match.ts";
import { RuleIndex } from "../../../core/policy/pack-policy.ts";
import { makeAction } from "../../support/action.ts";

function matchOf(yaml: string): Match {
  const faults = new FaultList("");
  const node = parseDocument("a.yaml", yaml, faults);
  if (node === undefined) throw new TypeError("expected YAML");
  const match = parseMatch(node, faults);
  faults.throwIfAny("PACK_INVALID", "a");
  return match;
}

const places = { hosts: [], paths: [], more: false };
const withGit: ActionFacts = { ...places, effect: "read", git: [] };

describe("matches(match, action)", () => {
  const rows: readonly [match: string, changed: Partial<ActionEnvelope>, result: boolean][] = [
    ["{}", {}, true],
    ["{}", { phase: "list" }, false],
    ["{ phase: '*' }", { phase: "list" }, true],
    ["{ phase: [list, output] }", { phase: "input" }, false],
    ["{ tool: read_note }", {}, true],
    ["{ tool: read_not }", {}, false],
    ["{ tool: [write_*, read_*] }", {}, true],
    ["{ tool: '*note', target: other }", {}, false],
    ["{ capability: [read, write] }", { capability: "delete" }, false],
    ["{ protocol: mcp, tenant: acme }", {}, true],
    ["{ protocol: model }", {}, false],
    ["{ protocol: '!model' }", {}, true],
    ["{ protocol: '!mcp' }", {}, false],
    ["{ capability: ['!re*', '!delete'] }", { capability: "write" }, true],
    ["{ capability: ['!re*', '!delete'] }", { capability: "read" }, false],
    ["{ phase: ['*', '!list'] }", { phase: "list" }, false],
    ["{ phase: ['*', '!list'] }", { phase: "output" }, true],
    ["{ principal.role: viewer }", {}, false],
    ["{ principal.role: operator, principal.key_id: k* }", {}, true],
    ["{ session.transport: sse }", {}, false],
    ["{ session.transport: http }", {}, true],
    ["{ tool: Read_note }", {}, false],
    ["{ effect: read }", {}, true],
    ["{ effect: '!read' }", {}, false],
    ["{ effect: [write, execute] }", { capability: "deploy" }, true],
    ["{ effect: execute, phase: list }", { capability: "deploy", phase: "list" }, true],
    ["{ effect: network, protocol: model }", { capability: "generate", protocol: "model" }, true],
    ["{ effect: read }", { facts: { ...places, effect: "unknown" } }, false],
    ["{ effect: delete }", { facts: { ...places, effect: "delete" } }, true],
    ["{ fact: none }", {}, true],
    ["{ fact: none }", { facts: { ...places, effect: "read" } }, true],
    ["{ fact: none }", { facts: withGit }, false],
    ["{ fact: git }", { facts: withGit }, true],
    ["{ fact: [sql, git] }", { facts: withGit }, true],
    ["{ fact: [sql, none] }", { facts: withGit }, false],
    ["{ fact: '*' }", { facts: withGit }, true],
    ["{ fact: git }", { facts: { ...places, effect: "read" } }, false],
    ["{ fact: git }", {}, false],
    ["{ tool: read_note }", { tool: "read_note " }, false],
    ["{ tool: r\u00e9sum\u00e9 }", { tool: "re\u0301sume\u0301" }, false],
    ["{ tool: read_note }", { tool: "r\u0435ad_note" }, false],
  ];
  for (const [match, changed, result] of rows) {
    it(`is ${result} for ${match} and ${JSON.stringify(changed)}`, () => {
      expect(matches(matchOf(match), makeAction(changed))).to.equal(result);
    });
  }
});

describe("mismatches(match, action)", () => {
  it("names effect and facts that do not agree", () => {
    const action = makeAction({ facts: withGit });
    expect(mismatches(matchOf("{ effect: [delete, unknown], fact: [sql, none] }"), action)).to.deep.equal([
      { key: "effect", expected: ["delete", "unknown"], got: "read" },
      { key: "fact", expected: ["sql", "none"], got: "git" },
    ]);
    expect(mismatches(matchOf("{ fact: shell }"), makeAction())).to.deep.equal([
      { key: "fact", expected: ["shell"], got: "none" },
    ]);
    expect(mismatches(matchOf("{ effect: read, fact: git }"), action)).to.deep.equal([]);
  });
});

describe("a rule about facts and the tool calls of a model's answer", () => {
  const answer = (facts: Partial<ActionFacts>): ActionEnvelope =>
    makeAction({
      protocol: "model",
      phase: "output",
      capability: "generate",
      facts: { effect: "delete", hosts: [], paths: [], more: false, ...facts },
    });
  const calls = [{ tool: "bash", effect: "delete" as const }];
  const path = [{ plain: "/a", inside: true, odd: false }];

  for (const [keys, expected] of [
    ["fact: path", true],
    ["fact: [path, calls]", true],
    ["fact: path, phase: output", true],
    ["fact: path, protocol: mcp", false],
    ["fact: shell", false],
    ["fact: path, phase: list", false],
    ["effect: delete", false],
    ["effect: delete, phase: output", true],
    ["fact: [path, none]", false],
  ] as const) {
    it(`${expected ? "judges" : "does not judge"} them with \`${keys}\``, () => {
      const rules = [{ position: 0, match: matchOf(`{ ${keys} }`) }];
      expect(new RuleIndex(rules).candidates(answer({ path, calls }))).to.have.length(expected ? 1 : 0);
      expect(mismatches(rules[0]?.match as Match, answer({ path, calls }))).to.have.length(
        expected ? 0 : keys.includes("mcp") ? 2 : 1,
      );
    });
  }

  it("does not judge an answer without calls, nor the output of another protocol", () => {
    const rules = [{ position: 0, match: matchOf("{ fact: path }") }];
    expect(new RuleIndex(rules).candidates(answer({ path }))).to.have.length(0);
    const output = { ...answer({ path, calls }), protocol: "mcp" as const };
    expect(new RuleIndex(rules).candidates(output)).to.have.length(0);
  });
});

describe("RuleIndex.candidates(action)", () => {
  const names = fc.constantFrom("a", "ab", "abc", "b", "bc", "");
  const globs = fc.constantFrom("a", "ab", "a*", "*b", "*b*", "*", "ab*c", "*c", "zz");
  const word = fc.oneof(
    globs.map((glob) => `'${glob}'`),
    fc.array(globs, { minLength: 1, maxLength: 3 }).map((list) => `[${list.map((glob) => `'${glob}'`).join(", ")}]`),
  );
  const rule = fc.record(
    {
      tool: word,
      target: word,
      tenant: word,
      capability: fc.constantFrom("read", "[read, write]", "'*'"),
      phase: fc.constantFrom("input", "[list, output]"),
      protocol: fc.constantFrom("mcp", "sql"),
      "principal.role": fc.constantFrom("operator", "viewer"),
    },
    { requiredKeys: [] },
  );
  const action = fc.record({
    tool: names,
    target: names,
    tenant: names,
    capability: fc.constantFrom("read", "write", "delete"),
    phase: fc.constantFrom("input", "list"),
    protocol: fc.constantFrom("mcp", "sql"),
  }) as fc.Arbitrary<Partial<ActionEnvelope>>;

  it("finds exactly the rules that match, each once, in the pack's order", () => {
    fc.assert(
      fc.property(fc.array(rule, { maxLength: 12 }), action, (keys, changed) => {
        const rules = keys.map((each, position) => {
          const members = Object.entries(each).map(([key, value]) => `${key}: ${value}`);
          return { position, match: matchOf(`{ ${members.join(", ")} }`) };
        });
        const attempted = makeAction(changed);
        const expected = rules.filter((each) => matches(each.match, attempted));
        expect(new RuleIndex(rules).candidates(attempted)).to.deep.equal(expected);
      }),
      { numRuns: 300 },
    );
  });
});
