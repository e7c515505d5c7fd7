import { expect } from "chai";
import { ParserInstance } from "../../../core/fact/parser-instance.ts";
import { loadSecondOpinion, takeCensus } from "../../../core/fact/shell/second-opinion.ts";
import { parseDialect, parsePostgresql } from "../../../core/fact/sql/parser.ts";
import { loadSqlParsers, readSql } from "../../../core/fact/sql/sql-text.ts";

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const trap = (): never => {
  throw new RangeError("Maximum call stack size exceeded");
};
const isRefusal = (error: unknown): boolean => error === "refused";

describe("an instance of a parser", () => {
  it("reads nothing before it is loaded, and stays where it refuses a text", async () => {
    let count = 0;
    const instance = new ParserInstance(async () => ++count);
    expect(instance.use((made) => made, isRefusal)).to.equal(null);
    await Promise.all([instance.load(), instance.load()]);
    const refused = instance.use(() => {
      throw "refused";
    }, isRefusal);
    expect([refused, instance.use((made) => made, isRefusal), count]).to.deep.equal([null, 1, 1]);
  });

  it("is replaced after a trap, at most three times in a minute", async () => {
    let now = 0;
    let count = 0;
    const instance = new ParserInstance(
      async () => ++count,
      () => now,
    );
    await instance.load();
    for (const made of [2, 3, 4]) {
      expect(instance.use(trap, isRefusal)).to.equal(null);
      expect(instance.use((each) => each, isRefusal)).to.equal(null);
      await nextTurn();
      expect(instance.use((each) => each, isRefusal)).to.equal(made);
    }
    instance.use(trap, isRefusal);
    await nextTurn();
    expect(instance.use((each) => each, isRefusal)).to.equal(null);
    now += 20_000;
    instance.use((each) => each, isRefusal);
    await nextTurn();
    expect(instance.use((each) => each, isRefusal)).to.equal(5);
  });

  it("is replaced thirty times altogether, and reads nothing after that", async () => {
    let now = 0;
    let count = 0;
    const instance = new ParserInstance(
      async () => ++count,
      () => now,
    );
    await instance.load();
    for (let round = 0; round < 40; round += 1) {
      now += 60_000;
      instance.use(trap, isRefusal);
      await nextTurn();
    }
    expect(count).to.equal(31);
    expect(instance.use((each) => each, isRefusal)).to.equal(null);
  });

  it("is tried again where it could not be made", async () => {
    let count = 0;
    const instance = new ParserInstance(async () => {
      count += 1;
      if (count === 2) throw new Error("no memory");
      return count;
    });
    await instance.load();
    instance.use(trap, isRefusal);
    await nextTurn();
    expect(instance.use((each) => each, isRefusal)).to.equal(null);
    await nextTurn();
    expect(instance.use((each) => each, isRefusal)).to.equal(3);
  });
});

describe("the parsers of the gateway", () => {
  before(async () => {
    await loadSqlParsers();
    await loadSecondOpinion();
  });

  it("read again after DataFusion's parser trapped", async () => {
    expect(parseDialect(`select 1${"+1".repeat(30_000)}`, "mysql")).to.equal(null);
    expect(readSql("select 1", "mysql").effect).to.equal("unknown");
    await loadSqlParsers();
    for (const dialect of ["mysql", "postgresql"] as const)
      expect(readSql("select 1", dialect).effect).to.equal("read");
  });

  it("keep their instance where they refuse a text", () => {
    expect(parseDialect("select from from", "mysql")).to.equal(null);
    expect(parsePostgresql(`select ${"(".repeat(100_000)}`)).to.equal(null);
    expect(takeCensus("ls (")).to.equal(null);
    expect(readSql("select 1", "postgresql").effect).to.equal("read");
    expect(takeCensus("ls")).to.include({ wordCount: 0 });
  });
});
