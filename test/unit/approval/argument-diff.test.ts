import { expect } from "chai";
import fc from "fast-check";
import { canonicalJson } from "../../../core/action/canonical-json.ts";
import { isJsonObject, type Json } from "../../../core/action/json.ts";
import { type ArgumentChange, diffArguments } from "../../../core/approval/argument-diff.ts";
import { growthOf, maxGrowth } from "../../support/duration.ts";

const everything = Number.POSITIVE_INFINITY;

type Container = Json[] | Record<string, Json>;

/** `before` with the changes made. What was removed has its place in `before`, so the last goes first. */
function applyChanges(before: Json, changes: readonly ArgumentChange[]): Json {
  const root: { "": Json } = { "": structuredClone(before) as Json };
  const kept = changes.filter(({ kind }) => kind !== "removed");
  const removed = changes.filter(({ kind }) => kind === "removed").reverse();
  for (const change of [...kept, ...removed]) applyChange(root, change);
  return root[""];
}

function applyChange(root: { "": Json }, change: ArgumentChange): void {
  const path = change.pointer.split("/").map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
  const last = path.pop() as string;
  const container = path.reduce((inner, name) => (inner as never)[name], root as unknown as Container);
  if (change.kind === "removed") removeFrom(container, last);
  else if (change.kind === "added" && Array.isArray(container)) container.splice(Number(last), 0, change.after);
  else
    Object.defineProperty(container, last, {
      value: change.after,
      enumerable: true,
      configurable: true,
      writable: true,
    });
}

function removeFrom(container: Container, name: string): void {
  if (Array.isArray(container)) container.splice(Number(name), 1);
  else delete container[name];
}

const names = fc.constantFrom("a", "b", "a/b", "~1", "", "0", "__proto__", "constructor", "toString");
const leaf = fc.constantFrom<Json>(null, true, false, 0, 1, "", "x", "y");
/** Small words, so that two values share much. */
const { json } = fc.letrec<{ json: Json; list: Json[]; object: Json }>((tie) => ({
  json: fc.oneof({ maxDepth: 5, depthSize: "small" }, leaf, tie("list"), tie("object")),
  list: fc.array(tie("json"), { maxLength: 5 }),
  object: fc
    .array(fc.tuple(names, tie("json")), { maxLength: 4 })
    .map((members) => JSON.parse(`{${members.map(([name, value]) => memberText(name, value)).join(",")}}`) as Json),
}));

function memberText(name: string, value: Json): string {
  return `${JSON.stringify(name)}:${JSON.stringify(value)}`;
}

describe("diffArguments(before, after, maxChanges)", () => {
  it("leads from `before` to `after` when it is applied", () => {
    fc.assert(
      fc.property(json, json, (before, after) => {
        const { changes, omitted } = diffArguments(before, after, everything);
        expect(omitted).to.equal(0);
        expect(canonicalJson(applyChanges(before, changes))).to.equal(canonicalJson(after));
      }),
      { numRuns: 3_000 },
    );
  });

  it("says nothing where nothing differs, whatever the order of members", () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(diffArguments(value, reorder(value))).to.deep.equal({ changes: [], omitted: 0 });
      }),
    );
  });

  it("says the same whatever the order of members", () => {
    fc.assert(
      fc.property(json, json, (before, after) => {
        expect(diffArguments(reorder(before), reorder(after))).to.deep.equal(diffArguments(before, after));
      }),
    );
  });

  it("tells the first `most` changes, and counts the others", () => {
    fc.assert(
      fc.property(json, json, fc.nat(5), (before, after, most) => {
        const all = diffArguments(before, after, everything).changes;
        const { changes, omitted } = diffArguments(before, after, most);
        expect(changes).to.deep.equal(all.slice(0, most));
        expect(omitted).to.equal(all.length - changes.length);
      }),
    );
  });

  const rows: readonly [name: string, before: string, after: string, changes: readonly ArgumentChange[]][] = [
    ["a value", '{"a":1}', '{"a":"1"}', [{ pointer: "/a", kind: "changed", before: 1, after: "1" }]],
    ["a whole", "[]", "{}", [{ pointer: "", kind: "changed", before: [], after: {} }]],
    ["a null", '{"a":null}', "{}", [{ pointer: "/a", kind: "removed", before: null }]],
    ["names to be escaped", "{}", '{"a/b~":1}', [{ pointer: "/a~1b~0", kind: "added", after: 1 }]],
    ["`__proto__`", "{}", '{"__proto__":{"a":1}}', [{ pointer: "/__proto__", kind: "added", after: { a: 1 } }]],
    ["an inherited name", '{"toString":1}', "{}", [{ pointer: "/toString", kind: "removed", before: 1 }]],
    ["an item at the end", '["x"]', '["x","x"]', [{ pointer: "/1", kind: "added", after: "x" }]],
    ["an item in front", '["b","c"]', '["a","b","c"]', [{ pointer: "/0", kind: "added", after: "a" }]],
    ["an item between", '["a","b","c"]', '["a","c"]', [{ pointer: "/1", kind: "removed", before: "b" }]],
    [
      "an item and a place",
      '[{"a":1},2]',
      '[{"a":2},3,2]',
      [
        { pointer: "/0/a", kind: "changed", before: 1, after: 2 },
        { pointer: "/1", kind: "added", after: 3 },
      ],
    ],
  ];
  for (const [name, before, after, changes] of rows) {
    it(`tells of ${name}`, () => {
      expect(diffArguments(JSON.parse(before) as Json, JSON.parse(after) as Json)).to.deep.equal({
        changes,
        omitted: 0,
      });
    });
  }

  it("does not repeat a vast name two hundred times", () => {
    const name = "n".repeat(100_000);
    const inner = (value: number): Json =>
      Object.fromEntries(Array.from({ length: 200 }, (_, index) => [index, value]));
    const { changes, omitted } = diffArguments({ [name]: inner(1) }, { [name]: inner(2) });
    expect([changes.length, omitted]).to.deep.equal([2, 198]);
  });

  it("takes linear time, at any depth and for lists that shift at every level", async () => {
    const nested = (depth: number, end: Json): Json => {
      let value = end;
      for (let level = 0; level < depth; level += 1) value = [value, [1, [2]]];
      return value;
    };
    const shifted = (depth: number, end: Json): Json => {
      let value = end;
      for (let level = 0; level < depth; level += 1) value = [value, 1, [1, [2]]];
      return value;
    };
    const depth = 50_000;
    expect(diffArguments(nested(depth, 1), nested(depth, 2)).changes.concat()).to.have.length(1);
    for (const after of [(levels: number) => nested(levels, 2), (levels: number) => shifted(levels, 1)]) {
      const prepare = (levels: number): readonly [Json, Json] => [nested(levels, 1), after(levels)];
      expect(await growthOf(prepare, (pair) => diffArguments(...pair), depth)).to.be.below(maxGrowth);
    }
    const long = Array.from({ length: 300_000 }, (_, index) => index);
    expect(diffArguments(long, ["new", ...long])).to.deep.equal({
      changes: [{ pointer: "/0", kind: "added", after: "new" }],
      omitted: 0,
    });
  });
});

/** The same value with every object's members the other way round. */
function reorder(value: Json): Json {
  if (Array.isArray(value)) return value.map(reorder);
  if (!isJsonObject(value)) return value;
  const members = Object.entries(value).toReversed();
  return JSON.parse(`{${members.map(([name, member]) => memberText(name, reorder(member))).join(",")}}`) as Json;
}
