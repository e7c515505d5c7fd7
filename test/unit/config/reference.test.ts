import { expect } from "chai";
import { fileSchema } from "../../../core/config/file-schema.ts";
import { configReference, describeKeys } from "../../../core/config/reference.ts";

describe("configReference()", () => {
  it("has a row with description and default for every key", () => {
    const rows = configReference()
      .split("\n")
      .filter((line) => line.startsWith("| `"));
    expect(rows.map((row) => /^\| `([^`]+)`/.exec(row)?.[1])).to.deep.equal(
      describeKeys(fileSchema).map(({ key }) => key),
    );
    for (const row of rows) expect(row.split(/(?<!\\)\|/)).to.have.length(6);
  });

  it("describes every key", () => {
    expect(describeKeys(fileSchema).filter(({ description }) => description.length < 8)).to.deep.equal([]);
  });
});
