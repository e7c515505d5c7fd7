import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { expect } from "chai";
import { parse } from "yaml";
import type { Json, JsonObject } from "../../../core/action/json.ts";
import { checkDocument } from "../../../core/config/check.ts";
import { parseDocument } from "../../../core/config/document.ts";
import { FaultList } from "../../../core/config/fault.ts";
import { fileSchema } from "../../../core/config/file-schema.ts";
import { configJsonSchema, trustJsonSchema } from "../../../core/config/reference.ts";
import { repositoryRoot } from "../../check/source-tree.ts";

/** What stands in a place where something else should. */
const wrong: readonly Json[] = [null, true, -1, 1e9, 0.5, "", "?? ??", [], [null], {}, { unknown: 1 }];

function compile(schema: JsonObject): ValidateFunction {
  return new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: false }).compile(schema);
}

describe("configJsonSchema()", () => {
  const isValid = compile(configJsonSchema());
  const example = parse(readFileSync(join(repositoryRoot, "core/config/gateway.example.yaml"), "utf8")) as JsonObject;

  function isTaken(document: Json): boolean {
    const faults = new FaultList("gateway.yaml");
    const node = parseDocument("gateway.yaml", JSON.stringify(document), faults);
    if (node !== undefined) checkDocument(node, fileSchema, faults);
    return faults.isEmpty;
  }

  it("takes the example", () => {
    expect(isValid(example), JSON.stringify(isValid.errors)).to.equal(true);
  });

  it("takes each of its keys by itself", () => {
    const parts = Object.entries(example).map(([key, value]) => ({ [key]: value as Json }));
    expect(parts.filter((part) => !isTaken(part) || !isValid(part))).to.deep.equal([]);
  });

  describe("wherever something else stands in the example", () => {
    let judged: { readonly name: string; readonly value: Json; readonly taken: boolean; readonly valid: boolean }[];

    before(() => {
      judged = everyChange(example).map(({ place, document, value }) => ({
        name: `${place} ${JSON.stringify(value)}`,
        value,
        taken: isTaken(document),
        valid: isValid(document),
      }));
    });

    it("refuses nothing that the gateway takes", () => {
      expect(judged.filter(({ taken, valid }) => taken && !valid).map(({ name }) => name)).to.deep.equal([]);
      expect(judged.filter(({ taken, valid }) => !taken && !valid).length).to.be.above(1_000);
    });

    it("refuses what the gateway refuses, but for texts whose form is more than a pattern", () => {
      const missed = judged.filter(({ value, taken, valid }) => typeof value !== "string" && valid && !taken);
      expect(missed.map(({ name }) => name)).to.deep.equal([]);
    });
  });

  it("refuses a key beside others than it belongs to, and asks for it beside those", () => {
    const upstream = { name: "files", transport: "stdio", command: "run" };
    for (const [entry, valid] of [
      [upstream, true],
      [{ ...upstream, url: "http://localhost" }, false],
      [{ name: "files", transport: "stdio" }, false],
      [{ name: "files", transport: "http", url: "http://localhost" }, true],
    ] as const) {
      expect(isValid({ upstreams: [entry] }), JSON.stringify(entry)).to.equal(valid);
    }
  });
});

describe("trustJsonSchema()", () => {
  it("is a schema that refuses what is unknown", () => {
    const isValid = compile(trustJsonSchema());
    expect(isValid({ signers: 1 })).to.equal(false);
  });
});

interface Change {
  readonly place: string;
  readonly value: Json;
  readonly document: Json;
}

/** Each key of the document by itself, with each of its places, in turn, taken by each wrong value. */
function everyChange(document: JsonObject): readonly Change[] {
  return placesOf(document, []).flatMap((path) => {
    const [key = ""] = path;
    const part = { [key]: document[key] as Json };
    return wrong.map((value) => ({ place: path.join("."), value, document: replaced(part, path, value) }));
  });
}

function placesOf(value: Json, path: readonly string[]): string[][] {
  if (value === null || typeof value !== "object") return [[...path]];
  const below = Object.entries(value).flatMap(([key, member]) => placesOf(member as Json, [...path, key]));
  return path.length === 0 ? below : [[...path], ...below];
}

function replaced(document: Json, path: readonly string[], value: Json): Json {
  const [key, ...rest] = path;
  if (key === undefined) return value;
  const copy = (Array.isArray(document) ? [...document] : { ...(document as JsonObject) }) as Record<string, Json>;
  copy[key] = replaced(copy[key] as Json, rest, value);
  return copy;
}
