import { expect } from "chai";
import type { Field } from "../../../core/config/field.ts";
import { configReference } from "../../../core/config/reference.ts";
import { fileSchema } from "../../../core/config/schema.ts";

describe("configReference()", () => {
  it("has a row with description and default for every key", () => {
    const rows = configReference()
      .split("\n")
      .filter((line) => line.startsWith("| `"));
    expect(rows).to.have.length(countKeys(fileSchema));
    for (const row of rows) expect(row.split(/(?<!\\)\|/)).to.have.length(6);
  });

  it("gives every key that is not required a default", () => {
    const lacking = everyField(fileSchema).filter(
      (field) => field.required !== true && field.type !== "object" && field.default === undefined,
    );
    expect(lacking).to.deep.equal([]);
  });
});

function membersOf(field: Field): readonly Field[] {
  if (field.type === "object") return Object.values(field.fields);
  return field.type === "list" || field.type === "map" ? [field.of] : [];
}

/** Every field but the entries of lists, which have no key of their own. */
function everyField(field: Field): Field[] {
  const members = membersOf(field);
  const own = field.type === "list" ? [] : members;
  return [...own, ...members.flatMap(everyField)];
}

function countKeys(field: Field): number {
  return everyField(field).length;
}
