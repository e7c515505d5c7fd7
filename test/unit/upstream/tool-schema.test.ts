import { expect } from "chai";
import type { Json } from "../../../core/action/json.ts";
import { schemaFault } from "../../../core/upstream/tool-reader.ts";
import { growthOf, maxGrowth } from "../../support/duration.ts";

describe("schemaFault(schema)", () => {
  const fine: Readonly<Record<string, Json>> = {
    "no reference": { type: "object", properties: { a: { type: "string" } } },
    "a local reference": { properties: { a: { $ref: "#/$defs/a" } }, $defs: { a: { type: "string" } } },
    "a tree that refers to itself through its data": {
      $ref: "#/$defs/node",
      $defs: { node: { type: "object", properties: { children: { type: "array", items: { $ref: "#/$defs/node" } } } } },
    },
    "the root in an item": { type: "array", items: { $ref: "#" } },
    "an anchor": { properties: { a: { $ref: "#a" } }, $defs: { x: { $anchor: "a", type: "string" } } },
    "a property that is called $ref": { properties: { $ref: { type: "string" } } },
    "a reference to nothing": { $ref: "#/$defs/missing" },
    "the dialect's own address": { $schema: "https://json-schema.org/draft/2020-12/schema" },
    "escapes in a pointer": { $ref: "#/$defs/a~1b", $defs: { "a/b": { type: "string" } } },
  };
  for (const [name, schema] of Object.entries(fine)) {
    it(`accepts ${name}`, () => expect(schemaFault(schema)).to.equal(undefined));
  }

  const remote = "the schema refers to another document";
  const endless = "the schema has a reference that leads back to itself";
  const chain = (length: number): Json => ({
    $ref: "#/$defs/0",
    $defs: Object.fromEntries(
      Array.from({ length }, (_, at) => [String(at), { $ref: `#/$defs/${(at + 1) % length}` }]),
    ),
  });
  const faulty: Readonly<Record<string, readonly [Json, string]>> = {
    "an http reference": [{ $ref: "http://169.254.169.254/latest/meta-data" }, remote],
    "a file reference": [{ properties: { a: { $ref: "file:///etc/passwd" } } }, remote],
    "a relative reference": [{ items: { $ref: "other.json#/a" } }, remote],
    "a dynamic remote reference": [{ $dynamicRef: "https://example.org/#a" }, remote],
    "a reference to itself": [{ $ref: "#" }, endless],
    "two that refer to each other": [chain(2), endless],
    "a long circle": [chain(3_000), endless],
    "a circle through allOf": [{ allOf: [{ $ref: "#" }] }, endless],
    "a circle through not and else": [{ $defs: { a: { not: { else: { $ref: "#/$defs/a" } } } } }, endless],
    "a circle through dependentSchemas": [{ dependentSchemas: { a: { $ref: "#" } } }, endless],
    "a circle through an anchor": [{ $anchor: "me", anyOf: [{ $ref: "#me" }] }, endless],
    "100,000 subschemas": [
      { properties: Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [`p${at}`, {}])) },
      "the schema has more than 10000 subschemas",
    ],
    "too many levels": [
      Array.from({ length: 70 }).reduce<Json>((inner) => ({ items: inner }), {}),
      "the schema is more than 64 levels deep",
    ],
  };
  for (const [name, [schema, fault]] of Object.entries(faulty)) {
    it(`refuses ${name}`, () => {
      expect(schemaFault(schema)).to.equal(fault);
    });
  }

  it("follows a long circle in linear time", async () => {
    expect(await growthOf(chain, schemaFault, 2_000)).to.be.below(maxGrowth);
  });
});
