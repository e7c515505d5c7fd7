import { expect } from "chai";
import fc from "fast-check";
import type { ActionFacts, GitFact, ShellCommand, SqlStatement } from "../../../core/action/action-fact.ts";
import type { ActionEnvelope } from "../../../core/action/envelope.ts";
import type { Json } from "../../../core/action/json.ts";
import { summarizeAction, summaryLine } from "../../../core/approval/summary.ts";
import { makeAction } from "../../support/action.ts";

function lineOf(args: Json, changed: Partial<ActionEnvelope> = {}): string {
  return summaryLine(summarizeAction(makeAction({ arguments: args, ...changed })));
}

describe("summaryLine(summarizeAction(action))", () => {
  it("says what, where, how much and what stands out", () => {
    const args = { url: "https://evil.example/x", argv: ["rm", "-rf", "/srv/my notes"], path: "../a" };
    expect(lineOf(args, { capability: "write", tool: "write_file", target: "files" })).to.equal(
      "write write_file on files; 82 bytes, 22 of them in /url; hosts evil.example; " +
        'paths "/srv/my notes", ../a; commands rm -rf "/srv/my notes"',
    );
    expect(lineOf({})).to.equal("read read_note on notes; 2 bytes");
    expect(lineOf("")).to.equal('read read_note on notes; 2 bytes, 0 of them in ""');
  });

  it("tells five of a kind, and that there are more", () => {
    const paths = Array.from({ length: 6 }, (_, index) => `/p${index}`);
    expect(lineOf({ paths })).to.match(/; paths \/p0, \/p1, \/p2, \/p3, \/p4 and more$/);
    expect(lineOf({ paths: paths.slice(1) })).to.match(/; paths \/p1, \/p2, \/p3, \/p4, \/p5$/);
    expect(lineOf({ argv: ["a".repeat(2_000)] })).to.match(/; commands too long to list$/);
  });

  it("lets nothing pass for something else [S51]", () => {
    expect(lineOf({}, { tool: "re\u202ead", target: "p\u0430y, b" })).to.equal(
      'read "re\\u{202e}ad" on "p\u0430y, b" [mixes Latin and Cyrillic letters]; 2 bytes',
    );
    expect(lineOf({ path: "/a\u200b; hosts good.example" })).to.contain('paths "/a\\u{200b}; hosts good.example"');
  });

  it("is one printable line of bounded length, whatever an agent sends [S51]", () => {
    const odd = fc.string({ unit: fc.constantFrom("/", "a", " ", "\n", "\u001b", "\u202e", ":", ".", "-", '"', "\\") });
    fc.assert(
      fc.property(odd, odd, fc.array(odd), (tool, name, argv) => {
        const line = lineOf({ [name]: name, argv, long: argv.join("/").repeat(50) }, { tool });
        expect(line).to.match(/^[\x20-\x7e]*$/);
      }),
    );
    const long = "\u202e".repeat(2_000_000);
    expect(lineOf({ [long]: long, argv: [long], path: `/${long}` })).to.have.length.below(1_000);
  });

  describe("where the arguments were stated", () => {
    const none = { hosts: [], paths: [], more: false };
    const lineOf = (facts: Partial<ActionFacts>): string =>
      summaryLine(summarizeAction(makeAction({ facts: { ...none, effect: "read", ...facts } })));
    const run = (changed: Partial<GitFact>): GitFact => ({
      subcommand: "status",
      options: [],
      remotes: [],
      refs: [],
      force: false,
      config_overrides: [],
      effect: "read",
      ...changed,
    });

    it("tells `git status` from a push by force to another host", () => {
      expect(lineOf({ git: [run({})] })).to.contain("; runs git status; ");
      const push = run({
        subcommand: "push",
        remotes: ["evil.example"],
        force: true,
        config_overrides: ["core.pager"],
      });
      expect(lineOf({ git: [push] })).to.contain("; pushes to evil.example, by force, with core.pager set; ");
      expect(lineOf({ git: [run({ subcommand: null })], effect: "unknown" })).to.contain(
        "; runs git in a way that cannot be read; does what cannot be told from its arguments; ",
      );
    });

    it("says which programs run, on what", () => {
      const rm: ShellCommand = {
        name: "rm",
        argv: ["rm", "/srv/x"],
        wrappers: ["sudo"],
        env: [],
        effect: "delete",
        redirects: [{ op: ">>", path: "log" }],
        hosts: [],
        paths: ["/srv/x"],
        place: "top",
      };
      const shell = { parsed: true, dynamic: false, more: false, effect: "delete" as const, commands: [rm] };
      expect(lineOf({ shell })).to.contain("; runs rm under sudo on /srv/x and writes log; ");
      expect(lineOf({ shell: { ...shell, dynamic: true, more: true, commands: [{ ...rm, name: null }] } })).to.contain(
        "; runs a program whose name is computed under sudo on /srv/x and writes log; computes a part of its command line when it runs; names more than is listed here; ",
      );
      expect(lineOf({ shell: { ...shell, parsed: false } })).to.contain("; runs a command line that cannot be read; ");
      const many = Array.from({ length: 6 }, (_, n) => ({ ...rm, name: `p${n}` }));
      expect(lineOf({ shell: { ...shell, commands: many } }))
        .to.contain("runs p4 ")
        .and.contain("; and more; ")
        .and.not.contain("p5");
    });

    it("says what SQL does, and to which tables", () => {
      const statement: SqlStatement = {
        kind: "drop",
        effect: "delete",
        tables: { read: [], write: ["orders", "users"] },
        functions: [],
        has_where: false,
        where_is_constant: false,
        into: false,
        locking: false,
      };
      const sql = {
        parsed: true,
        dialect: "sqlite" as const,
        effect: "delete" as const,
        statements: [statement],
        more: false,
      };
      expect(lineOf({ sql })).to.contain("; drops orders, users; ");
      const other = (changed: Partial<SqlStatement>): string =>
        lineOf({ sql: { ...sql, statements: [{ ...statement, ...changed }] } });
      expect(other({ kind: "delete" })).to.contain("; deletes from orders, users, every row; ");
      expect(other({ kind: "update", has_where: true })).to.contain("; changes orders, users; ");
      expect(other({ kind: "vacuum", tables: { read: [], write: [] } })).to.contain("; runs vacuum; ");
      expect(lineOf({ sql: { ...sql, parsed: false } })).to.contain("; runs SQL that cannot be read; ");
    });

    it("names hosts of other zones, and whom it is for, without what could mislead a terminal", () => {
      const url = { scheme: "http", port: 80, userinfo: false, odd: false } as const;
      const facts: Partial<ActionFacts> = {
        url: [
          { ...url, host: "169.254.169.254", zone: "metadata" },
          { ...url, host: "a.example", zone: "name" },
          { ...url, host: "b\u202e", zone: "name", odd: true },
        ],
        address: [{ kind: "mail", plain: "a@b.example", odd: false }],
      };
      expect(lineOf(facts))
        .to.contain("; connects to the metadata host 169.254.169.254; ")
        .and.contain("; is for a@b.example; ");
      expect(lineOf(facts)).to.contain("a host that clients read in different ways").and.not.contain("\u202e");
      expect(lineOf(facts)).to.not.contain("a.example; ");
    });
  });
});
