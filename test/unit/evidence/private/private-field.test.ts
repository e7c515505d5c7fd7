import { randomBytes } from "node:crypto";
import { expect } from "chai";
import type { ActionFacts, ShellFacts } from "../../../../core/action/action-fact.ts";
import type { Json } from "../../../../core/action/json.ts";
import {
  FieldHider,
  fieldCommitment,
  fieldsDigest,
  type HiddenValue,
  type KeptField,
} from "../../../../core/evidence/private/private-field.ts";
import { turnsOf } from "../../../../core/store/pace.ts";
import { makeAction } from "../../../support/action.ts";

const open = new FieldHider({ storeValues: true, storeLabels: true, redactFields: [] }, randomBytes);

function namesOf({ fields }: HiddenValue): readonly (string | undefined)[] {
  return fields.map(({ name }) => name).sort();
}

function isWhole({ commitment, name, salt, value }: KeptField): boolean {
  return commitment === undefined && name !== undefined && salt !== undefined && value !== undefined;
}

function commitmentOf({ commitment, name = "", salt = "", value = null }: KeptField): string {
  return commitment ?? fieldCommitment({ name, salt, value });
}

function hidden(redactFields: readonly string[], tool: string, value: Json): readonly (string | undefined)[] {
  return namesOf(new FieldHider({ storeValues: true, storeLabels: true, redactFields }, randomBytes).hide(tool, value));
}

describe("FieldHider.hide(tool, value)", () => {
  it("makes a field of each member, in the order of the commitments, under salts of their own", () => {
    const value = { path: "/a", mode: 420, deep: { a: [1] }, nothing: null, __proto__x: true };
    const result = open.hide("write_file", value);
    expect(Object.fromEntries(result.fields.map(({ name, value: each }) => [name, each]))).to.deep.equal(value);
    expect(result.fields.every(isWhole)).to.equal(true);
    expect(new Set(result.fields.map(({ salt }) => salt)).size).to.equal(5);
    const commitments = result.fields.map(commitmentOf);
    expect(commitments).to.deep.equal(commitments.toSorted());
    expect(result.digest).to.equal(fieldsDigest(commitments));
  });

  it("hides equal values differently", () => {
    expect(open.hide("t", { a: 1 }).digest).to.not.equal(open.hide("t", { a: 1 }).digest);
  });

  for (const value of [null, true, 1.5, "text", ["a"]] as const) {
    it(`makes one field of ${JSON.stringify(value)}`, () => {
      const { fields } = open.hide("t", value);
      expect(fields.map(({ name, value: each }) => [name, each])).to.deep.equal([["", value]]);
    });
  }

  it("makes one field of an object with more than 256 members", () => {
    const members = (count: number): Json =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`m${at}`, at]));
    expect(open.hide("t", members(256)).fields).to.have.length(256);
    expect(open.hide("t", members(257)).fields.map(({ name, value }) => [name, value])).to.deep.equal([
      ["", members(257)],
    ]);
  });

  describe("when values are not to be stored", () => {
    it("keeps commitments and salts alone", () => {
      const { fields } = new FieldHider({ storeValues: false, storeLabels: true, redactFields: [] }, randomBytes).hide(
        "t",
        {
          a: 1,
          b: 2,
        },
      );
      for (const field of fields) expect(Object.keys(field)).to.deep.equal(["commitment", "salt"]);
      expect(fields).to.have.length(2);
    });
  });

  describe("when a field is to be redacted", () => {
    it("keeps its commitment alone, and the others whole", () => {
      const hider = new FieldHider(
        { storeValues: true, storeLabels: true, redactFields: ["login:pass*"] },
        randomBytes,
      );
      const { fields, digest } = hider.hide("login", { password: "x", user: "ann" });
      expect(fields.filter(isWhole).map(({ name }) => name)).to.deep.equal(["user"]);
      expect(fields.filter((field) => !isWhole(field)).map((field) => Object.keys(field))).to.deep.equal([
        ["commitment"],
      ]);
      expect(digest).to.equal(fieldsDigest(fields.map(commitmentOf)));
    });

    it("goes by tool and field", () => {
      const value = { token: "x", user: "ann" };
      expect(hidden(["login:token"], "login", value)).to.deep.equal(["user", undefined]);
      expect(hidden(["login:token"], "logout", value)).to.deep.equal(["token", "user"]);
      expect(hidden(["*:token"], "logout", value)).to.deep.equal(["user", undefined]);
      expect(hidden(["log*:*"], "login", value)).to.deep.equal([undefined, undefined]);
      expect(hidden(["login:*"], "login", "text")).to.deep.equal([undefined]);
    });

    it("takes with it all that shares its field", () => {
      const value = Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`m${at}`, at]));
      expect(hidden(["t:m299"], "t", value)).to.deep.equal([undefined]);
      expect(hidden(["t:m300"], "t", value)).to.deep.equal([""]);
    });
  });
});

describe("FieldHider.hideInTurns(tool, value, turns)", () => {
  const page = "page of text. ".repeat(50_000);
  let pauses = 0;
  const turns = turnsOf(async () => void pauses++);

  it("hides as hide does, and lets others have the thread", async () => {
    const hider = new FieldHider({ storeValues: true, storeLabels: true, redactFields: ["t:key"] }, randomBytes);
    for (const value of [{ path: "/a", page, list: [page], key: page }, page, [page]] as const) {
      const whole = hider.hide("t", value);
      const result = await hider.hideInTurns("t", value, turns);
      expect(namesOf(result)).to.deep.equal(namesOf(whole));
      expect(result.fields.filter(isWhole)).to.have.length(whole.fields.filter(isWhole).length);
      expect(result.digest).to.equal(fieldsDigest(result.fields.map(commitmentOf)));
    }
    expect(pauses).to.be.greaterThan(4);
    const nothing = await hider.hideInTurns("t", { page }, turns, false);
    expect(nothing.fields.map(({ commitment, ...kept }) => [typeof commitment, kept])).to.deep.equal([["string", {}]]);
  });
});

describe("FieldHider.hide(tool, value, false)", () => {
  it("keeps one commitment that nobody can open, and the digest is over that", () => {
    const { digest, fields } = open.hide("t", { a: 1, b: "two" }, false);
    expect(fields.map((field) => Object.keys(field))).to.deep.equal([["commitment"]]);
    expect(digest).to.equal(fieldsDigest(fields.map(commitmentOf)));
    expect(open.hide("t", { a: 1, b: "two" }, false).digest).to.not.equal(digest);
  });
});

describe("FieldHider.hideFacts(action, facts)", () => {
  const action = makeAction({ tool: "run", arguments: { command: "rm /srv/x", note: "n" } });

  function factsOf(word: string): ActionFacts {
    const runs = { name: "rm", argv: ["rm", word], wrappers: [], env: [], redirects: [], hosts: [], paths: [word] };
    const command = { ...runs, effect: "delete", place: "top" } as const;
    const shell: ShellFacts = { parsed: true, dynamic: false, more: false, effect: "delete", commands: [command] };
    return { hosts: [], paths: [word], more: false, effect: "delete", shell };
  }

  it("makes a field of each member but the effect", () => {
    const { effect: _, ...rest } = factsOf("/srv/x");
    const result = open.hideFacts(action, factsOf("/srv/x"));
    expect(Object.fromEntries(result.fields.map(({ name, value }) => [name, value]))).to.deep.equal(rest);
    expect(result.fields.every(isWhole)).to.equal(true);
    expect(result.digest).to.equal(fieldsDigest(result.fields.map(commitmentOf)));
  });

  for (const redactFields of [["run:note"], ["run:command"], ["*:com*"], ["run:"]]) {
    it(`keeps nothing of facts where ${redactFields.join()} is not kept of the arguments`, () => {
      const hider = new FieldHider({ storeValues: true, storeLabels: true, redactFields }, randomBytes);
      const { fields } = hider.hideFacts(action, factsOf("/srv/x"));
      expect(fields.map((field) => Object.keys(field))).to.deep.equal([["commitment"]]);
    });
  }

  it("keeps facts of another tool's redaction whole", () => {
    const hider = new FieldHider({ storeValues: true, storeLabels: true, redactFields: ["walk:note"] }, randomBytes);
    expect(hider.hideFacts(action, factsOf("/srv/x")).fields.every(isWhole)).to.equal(true);
  });

  it("keeps nothing but a commitment of facts that are longer than 16,384 characters", () => {
    const room = 16_384 - JSON.stringify({ ...factsOf(""), effect: undefined }).length;
    const word = "x".repeat(Math.floor(room / 3));
    expect(open.hideFacts(action, factsOf(word)).fields.every(isWhole)).to.equal(true);
    const { fields } = open.hideFacts(action, factsOf(`${word}x`));
    expect(fields.map((field) => Object.keys(field))).to.deep.equal([["commitment"]]);
  });

  it("replaces half a character, which no canonical JSON can hold", () => {
    const { fields } = open.hideFacts(action, factsOf("/srv/\ud83d"));
    expect(fields.every(isWhole)).to.equal(true);
    expect(fields.find(({ name }) => name === "paths")?.value).to.deep.equal(["/srv/\ufffd"]);
  });
});
