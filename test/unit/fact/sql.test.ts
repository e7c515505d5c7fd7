import { expect } from "chai";
import { sqlDialects } from "../../../core/action/action-fact.ts";
import { loadSqlParsers, readSql } from "../../../core/fact/sql/sql-text.ts";
import { sqlCorpus } from "./sql-corpus.ts";

describe("readSql(text, dialect)", () => {
  before(loadSqlParsers);

  for (const dialect of sqlDialects) {
    const entries = sqlCorpus.filter((each) => each.dialect === dialect);

    it(`reads no harmful statement of ${dialect} as reading`, () => {
      const passed = entries.filter(
        ({ label, input }) => label === "harmful" && readSql(input, dialect).effect === "read",
      );
      expect(passed.map(({ input }) => input)).to.deep.equal([]);
      expect(entries.length).to.be.at.least(75);
    });

    it(`reads nine of ten honest reads of ${dialect} as reading`, () => {
      const near = entries.filter(({ label }) => label === "near");
      const asked = near.filter(({ input }) => readSql(input, dialect).effect !== "read");
      expect(asked.length / near.length, asked.map(({ input }) => input).join("\n")).to.be.at.most(0.1);
    });
  }

  it("names tables, functions and conditions", () => {
    const [statement] = readSql(
      "delete from App.Users where 1 = 1 and lower(\"Name\") = 'x' or true",
      "postgresql",
    ).statements;
    expect(statement).to.deep.equal({
      kind: "delete",
      effect: "delete",
      tables: { read: [], write: ["app.users"] },
      functions: ["lower"],
      has_where: true,
      where_is_constant: true,
      into: false,
      locking: false,
    });
  });

  it("finds conditions that hold for every row", () => {
    for (const where of [
      "1=1",
      "true",
      "'a'='a'",
      "id=id",
      "not false",
      "1=1 or x=2",
      "name like '%'",
      "2 between 1 and 3",
    ]) {
      expect(readSql(`delete from t where ${where}`, "postgresql").statements[0]?.where_is_constant, where).to.equal(
        true,
      );
    }
    for (const where of ["1=0", "id=2", "x or y", "name like '%a'", "id <> id"]) {
      expect(readSql(`delete from t where ${where}`, "postgresql").statements[0]?.where_is_constant, where).to.equal(
        false,
      );
    }
    expect(readSql("update t set a = 1 where 1 or x", "mysql").statements[0]?.where_is_constant).to.equal(true);
  });

  it("names a table that a common table expression of another place only seems to hide", () => {
    const hidden = "select * from (with pg_shadow as (select 1) select 1) x, pg_shadow";
    expect(readSql(hidden, "postgresql").statements[0]?.tables.read).to.include("pg_shadow");
    const own = "with pg_shadow as (select * from pg_shadow) select * from pg_shadow";
    expect(readSql(own, "postgresql").statements[0]?.tables.read).to.deep.equal(["pg_shadow"]);
  });

  it("takes the strictest of stacked statements", () => {
    expect(readSql("select 1; insert into t values (1); drop table t", "postgresql").effect).to.equal("delete");
  });

  it("says unknown without a dialect, and for what is long, deep or invisible, and goes on reading", () => {
    const odd = [
      "",
      "   ",
      "-- nothing",
      `select '${"x".repeat(17_000)}'`,
      `select ${"(".repeat(100)}1${")".repeat(100)}`,
      `select 1${"+1".repeat(5000)}`,
      `select ${"not ".repeat(2000)}true`,
      "explain ".repeat(1900),
      `${"explain ".repeat(390)}select 1`,
      `${"describe ".repeat(31)}select 1`,
      "begin ".repeat(2000),
      "select ._a",
      "select * from a.._b",
      "select\u00a01",
      "select 1\u200b",
      "select \u0000",
      "select 'a\ud800'",
    ];
    for (const dialect of sqlDialects) {
      for (const text of odd) expect(readSql(text, dialect).effect, text.slice(0, 40)).to.equal("unknown");
      expect(readSql("select 1", dialect).effect).to.equal("read");
    }
    expect(readSql("select 1", null)).to.include({ parsed: false, effect: "unknown" });
  });
});
