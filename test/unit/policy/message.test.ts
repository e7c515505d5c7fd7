import { expect } from "chai";
import type { Json } from "../../../core/action/json.ts";
import { hasUnprintable, showText } from "../../../core/action/visible-text.ts";
import { CelEngine } from "../../../core/policy/cel/engine.ts";
import { evaluationUnits } from "../../../core/policy/cel/meter.ts";
import { variablesOf } from "../../../core/policy/cel/scope.ts";
import { compileMessage } from "../../../core/policy/rule.ts";
import { makeAction } from "../../support/action.ts";
import { scopeOf } from "../../support/expression.ts";

function render(text: string, args: Json = {}): string {
  const engine = new CelEngine();
  const message = compileMessage(text, engine, scopeOf(["input"]));
  if (!("render" in message)) throw new TypeError(message[0]?.message);
  engine.meter.left = evaluationUnits;
  return message.render(variablesOf(makeAction({ arguments: args }), { settings: {}, data: {} }));
}

describe("Message.render(variables)", () => {
  const rows: readonly [text: string, args: Json, rendered: string][] = [
    ["nothing to fill in", {}, "nothing to fill in"],
    ["`{{ tool }}` on `{{target}}`", {}, "`read_note` on `notes`"],
    ["{{ args.n }} {{ args.b }} {{ args.z }}", { n: 1.5, b: true, z: null }, "1.5 true null"],
    ["{{ args.l }} and {{ args.o }}", { l: [1, "a"], o: { k: ["v"] } }, '[1, "a"] and {k: ["v"]}'],
    ["{{ args.d }}", { d: [[[["deep"]]]] }, "[[[[…]]]]"],
    ["{{ size(args.l) }} items", { l: [1, 2] }, "2 items"],
  ];
  for (const [text, args, rendered] of rows) {
    it(`renders ${text}`, () => {
      expect(render(text, args)).to.equal(rendered);
    });
  }

  it("falls back to the text as written, with a marker", () => {
    expect(render("path {{ args.path }}")).to.equal("path {{ args.path }} [this message could not be evaluated]");
  });

  it("cuts what is interpolated at 256 characters", () => {
    expect(render("<{{ args.t }}>", { t: "é".repeat(300) })).to.equal(`<${"é".repeat(256)}…>`);
    expect(render("<{{ args.t }}>", { t: "😀".repeat(256) })).to.equal(`<${"😀".repeat(256)}>`);
    expect(render("{{ args.l }}", { l: Array.from({ length: 5_000 }, () => "x".repeat(1_000)) })).to.have.length(257);
  });

  it("shows what would deceive a reader for what it is", () => {
    const text = "a\u0000b\u001b[31mc\nd\u202ee\u200bf\u2066g\ufeffh\u{e0041}i\u2028j\u00ad";
    expect(render("{{ args.t }}", { t: text })).to.equal(
      "a\\u{0}b\\u{1b}[31mc\\u{a}d\\u{202e}e\\u{200b}f\\u{2066}g\\u{feff}h\\u{e0041}i\\u{2028}j\\u{ad}",
    );
    expect(hasUnprintable(render("{{ args.t }}", { t: { [text]: text } }))).to.equal(false);
  });
});

describe("showText(text)", () => {
  it("leaves ordinary text of any language alone", () => {
    for (const text of ["plain", "naïve résumé", "日本語", "שלום", "مرحبا", "😀"])
      expect(showText(text)).to.equal(text);
  });

  it("shows a lone surrogate", () => {
    expect(showText("a\ud800b")).to.equal("a\\u{d800}b");
  });
});
