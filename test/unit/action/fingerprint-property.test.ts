import { expect } from "chai";
import fc from "fast-check";
import { canonicalJson } from "../../../core/action/canonical-json.ts";
import type { ActionEnvelope } from "../../../core/action/envelope.ts";
import { fingerprint } from "../../../core/action/fingerprint.ts";
import type { Json, JsonObject } from "../../../core/action/json.ts";
import { makeAction } from "../../support/action.ts";
import { roundsOf } from "../../support/rounds.ts";

/** Short texts that run into one another when they are put together without care. */
const text = fc.constantFrom("", "a", "ab", "b", "bc", "c", "A", "null", '"', "\u00e9", "e\u0301");
const json = fc.jsonValue({ maxDepth: 4, stringUnit: "grapheme" }) as fc.Arbitrary<Json>;
const key = fc.string({ unit: "grapheme", maxLength: 3 }).filter((name) => name !== "__proto__");
const object: fc.Arbitrary<JsonObject> = fc.dictionary(key, json, { maxKeys: 5 });

/** The nine inputs, each with few values, so that two actions often differ in one of them alone. */
const inputs = fc.record({
  tenant: text,
  principal: text,
  session: text,
  task: fc.option(text, { nil: null }),
  protocol: fc.constantFrom("mcp", "http", "shell", "sql", "git", "model"),
  tool: text,
  target: text,
  capability: fc.constantFrom("read", "write", "delete", "execute", "deploy", "network", "generate", "approve"),
  arguments: fc.oneof(
    fc.constantFrom<Json>({}, { a: null }, { a: "" }, { a: "null" }, { a: 0 }, { a: false }, { a: [] }, { a: {} }),
    object,
  ),
});
type Inputs = typeof inputs extends fc.Arbitrary<infer T> ? T : never;

function actionOf({ principal, session, ...rest }: Inputs): ActionEnvelope {
  return makeAction({
    ...rest,
    principal: { id: principal, role: "operator", keyId: "k" },
    session: { id: session, transport: "http" },
  } as Partial<ActionEnvelope>);
}

describe("fingerprint(action), for any action", () => {
  it("is the same exactly where all nine inputs are the same [R2.2-2]", () => {
    fc.assert(
      fc.property(inputs, inputs, fc.subarray(Object.keys(names) as (keyof Inputs)[]), (one, other, shared) => {
        const mixed = { ...other, ...Object.fromEntries(shared.map((name) => [name, one[name]])) } as Inputs;
        const isSame = canonicalJson(one as unknown as Json) === canonicalJson(mixed as unknown as Json);
        expect(fingerprint(actionOf(one)) === fingerprint(actionOf(mixed))).to.equal(isSame);
      }),
      { numRuns: roundsOf(500, 20_000) },
    );
  });

  it("changes with any value at any depth, and with its loss", () => {
    fc.assert(
      fc.property(object, json, fc.nat(), (args, value, at) => {
        const places = placesIn(args);
        fc.pre(places.length > 0);
        const path = places[at % places.length] as readonly string[];
        const before = fingerprint(makeAction({ arguments: args }));
        const replaced = change(args, path, value);
        const isSame = canonicalJson(replaced) === canonicalJson(args);
        expect(fingerprint(makeAction({ arguments: replaced })) === before).to.equal(isSame);
        expect(fingerprint(makeAction({ arguments: change(args, path, undefined) }))).not.to.equal(before);
      }),
      { numRuns: roundsOf(500, 20_000) },
    );
  });

  it("changes with the order of an array, with letter case, and with the form of the same letter", () => {
    fc.assert(
      fc.property(fc.array(json, { minLength: 2, maxLength: 5 }), (list) => {
        const isSame = canonicalJson(list) === canonicalJson(list.toReversed());
        const [one, other] = [list, list.toReversed()].map((each) =>
          fingerprint(makeAction({ arguments: { list: each } })),
        );
        expect(one === other).to.equal(isSame);
      }),
    );
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (word) => {
        const prints = ["NFC", "NFD", "NFKC"].map((form) => word.normalize(form)).concat(word.toUpperCase(), word);
        for (const each of prints) {
          expect(of({ each }) === of({ each: word })).to.equal(each === word);
          expect(of({ [each]: 1 }) === of({ [word]: 1 })).to.equal(each === word);
        }
      }),
    );
  });

  it("stays with another order of keys at any depth, and other white space", () => {
    fc.assert(
      fc.property(object, fc.infiniteStream(fc.nat()), (args, stream) => {
        const draws = stream[Symbol.iterator]();
        const shuffled = JSON.parse(
          JSON.stringify(
            shuffle(args, () => draws.next().value as number),
            null,
            3,
          ),
        ) as Json;
        expect(of(shuffled)).to.equal(of(args));
      }),
    );
  });

  it("changes with what continues an interrupted call, and with `_meta` that is passed through", () => {
    fc.assert(
      fc.property(object, object, (args, more) => {
        const print = fingerprint(makeAction({ arguments: args, continuation: more }));
        expect(print).not.to.equal(of(args));
        const isSame = canonicalJson(more) === canonicalJson({ _meta: more });
        expect(fingerprint(makeAction({ arguments: args, continuation: { _meta: more } })) === print).to.equal(isSame);
      }),
    );
  });
});

describe('fingerprint(action, "task"), for any action', () => {
  it("changes with each of the eight other inputs, and is never an exact fingerprint", () => {
    fc.assert(
      fc.property(inputs, inputs, (one, other) => {
        const same = { ...other, arguments: one.arguments };
        const isSame = canonicalJson(one as unknown as Json) === canonicalJson(same as unknown as Json);
        expect(fingerprint(actionOf(one), "task") === fingerprint(actionOf(same), "task")).to.equal(isSame);
        expect(fingerprint(actionOf(one), "task")).not.to.equal(fingerprint(actionOf(one)));
      }),
    );
  });

  it("stays with another value of the same type, and changes with a member more or less", () => {
    fc.assert(
      fc.property(object, key, (args, name) => {
        const print = fingerprint(makeAction({ arguments: args }), "task");
        expect(fingerprint(makeAction({ arguments: blur(args) as JsonObject }), "task")).to.equal(print);
        fc.pre(!Object.hasOwn(args, name));
        expect(fingerprint(makeAction({ arguments: { ...args, [name]: null } }), "task")).not.to.equal(print);
      }),
    );
  });
});

const names: Readonly<Record<keyof Inputs, true>> = {
  tenant: true,
  principal: true,
  session: true,
  task: true,
  protocol: true,
  tool: true,
  target: true,
  capability: true,
  arguments: true,
};

function of(args: Json): string {
  return fingerprint(makeAction({ arguments: args }));
}

/** The path of every value inside. */
function placesIn(value: Json, path: readonly string[] = []): readonly (readonly string[])[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => [[...path, name], ...placesIn(member, [...path, name])]);
}

/** The same with another value at `path`, or with none. */
function change(value: Json, [name = "", ...rest]: readonly string[], to: Json | undefined): Json {
  const members = Object.entries(value as JsonObject).flatMap(([each, member]): [string, Json][] => {
    if (each !== name) return [[each, member]];
    if (rest.length > 0) return [[each, change(member, rest, to)]];
    return to === undefined ? [] : [[each, to]];
  });
  return Array.isArray(value) ? members.map(([, member]) => member) : Object.fromEntries(members);
}

function shuffle(value: Json, draw: () => number): Json {
  if (Array.isArray(value)) return value.map((each) => shuffle(each, draw));
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => [draw(), name, shuffle(member, draw)] as const);
  return Object.fromEntries(members.toSorted(([a], [b]) => a - b).map(([, name, member]) => [name, member]));
}

/** Other values of the same types. */
function blur(value: Json): Json {
  if (Array.isArray(value)) return value.map(blur);
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, blur(member)]));
  }
  if (typeof value === "string") return `${value}x`;
  if (typeof value === "number") return value === 7 ? 8 : 7;
  return typeof value === "boolean" ? !value : value;
}
