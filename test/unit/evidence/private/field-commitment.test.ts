import { expect } from "chai";
import { sha256Hex } from "../../../../core/action/canonical-json.ts";
import { fieldCommitment, fieldsDigest } from "../../../../core/evidence/private/private-field.ts";

const field = { name: "path", salt: "c2FsdHNhbHRzYWx0c2FsdA", value: { b: 1, a: ["é", null] } };

describe("fieldCommitment(field)", () => {
  it("hashes salt, name and value, canonically", () => {
    expect(fieldCommitment(field)).to.equal(
      sha256Hex('["field-v1","c2FsdHNhbHRzYWx0c2FsdA","path",{"a":["é",null],"b":1}]'),
    );
  });

  for (const [what, change] of [
    ["name", { name: "path " }],
    ["salt", { salt: "c2FsdHNhbHRzYWx0c2FsdB" }],
    ["value", { value: { b: 1, a: ["e", null] } }],
  ] as const) {
    it(`differs with another ${what}`, () => {
      expect(fieldCommitment({ ...field, ...change })).to.not.equal(fieldCommitment(field));
    });
  }
});

describe("fieldsDigest(commitments)", () => {
  it("hashes the sorted list, whatever its order", () => {
    const digest = `sha256:${sha256Hex('["fields-v1",["aa","bb"]]')}`;
    expect(fieldsDigest(["bb", "aa"])).to.equal(digest);
    expect(fieldsDigest(["aa", "bb"])).to.equal(digest);
  });

  it("is that of an empty list where there is no field", () => {
    expect(fieldsDigest([])).to.equal(`sha256:${sha256Hex('["fields-v1",[]]')}`);
  });
});
