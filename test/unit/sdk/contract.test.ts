import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { AnySchema, ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect } from "chai";
import fc from "fast-check";
import { stringify } from "yaml";
import { PluginBreach } from "../../../core/extension/breach.ts";
import { readPluginVerdict } from "../../../core/extension/plugin-verdict.ts";
import { acceptUnverified } from "../../../core/extension/unverified.ts";
import { capabilities } from "../../../core/kernel/capability.ts";
import { decisions } from "../../../core/kernel/decision.ts";
import { contentDigest } from "../../../core/kernel/digest.ts";
import { phases, protocols, type ActionEnvelope as Sealed, withOutput } from "../../../core/kernel/envelope.ts";
import { GatewayError } from "../../../core/kernel/error.ts";
import { isJsonObject, type Json } from "../../../core/kernel/json.ts";
import {
  type Verdict as Judged,
  type Finding as Recorded,
  type Redaction as Redacting,
  severities,
} from "../../../core/kernel/policy.ts";
import { roles } from "../../../core/kernel/role.ts";
import { readPlugin } from "../../../core/policy/plugin-source.ts";
import type { ActionEnvelope, Finding, PluginManifest, Redaction, Verdict } from "../../../sdk/contract/index.ts";
import { PluginFault } from "../../../sdk/harness/fault.ts";
import { exampleAction } from "../../../sdk/harness/index.ts";
import { readVerdict } from "../../../sdk/harness/verdict.ts";
import { repositoryRoot } from "../../check/source-tree.ts";
import { makeAction } from "../../support/action.ts";

/** `true` is its only value, and only where each of the two can stand for the other, with all that may be left out. */
type Same<A, B> = Assignable<A, B> &
  Assignable<B, A> &
  Assignable<Required<A>, Required<B>> &
  Assignable<Required<B>, Required<A>>;
type Assignable<A, B> = [A] extends [B] ? true : never;
const same: readonly [
  Same<ActionEnvelope, Sealed>,
  Same<Finding, Omit<Recorded, "mode">>,
  Same<Redaction, Redacting>,
  Same<Verdict, { findings: readonly Finding[] } & Pick<Judged, "decision" | "redactions">>,
] = [true, true, true, true];

/** As much of a schema as says which words there are. */
interface Words {
  readonly [name: string]: { readonly enum?: readonly string[]; readonly properties?: Words } | undefined;
}

function compile(name: string): ValidateFunction {
  const schema: AnySchema = JSON.parse(readFileSync(join(repositoryRoot, `sdk/contract/${name}.schema.json`), "utf8"));
  return new Ajv2020({ strict: true, allowUnionTypes: true }).compile(schema);
}

describe("the SDK's contract", () => {
  const isAction = compile("action");
  const isVerdict = compile("verdict");
  const isManifest = compile("plugin");

  it("has the types of the gateway", () => {
    expect(same).to.deep.equal([true, true, true, true]);
  });

  describe("of actions", () => {
    it("describes what the gateway hands to a plugin", () => {
      const whole = makeAction({
        continuation: { requestState: "x" },
        tool_definition: { digest: "sha256:00", annotations: {} },
        session: { id: "s", transport: "sse", label: "l" },
      });
      for (const action of [makeAction(), whole, withOutput(whole, null), exampleAction()]) {
        expect(isAction(action), JSON.stringify(isAction.errors)).to.equal(true);
      }
    });

    it("knows the same words", () => {
      const { properties } = isAction.schema as { readonly properties: Words };
      expect(properties.phase?.enum).to.have.members([...phases]);
      expect(properties.protocol?.enum).to.have.members([...protocols]);
      expect(properties.capability?.enum).to.have.members([...capabilities]);
      expect(properties.principal?.properties?.role?.enum).to.have.members([...roles]);
    });

    it("refuses what no action is", () => {
      for (const wrong of [
        { version: 2 },
        { phase: "after" },
        { client: {} },
        { more: 1 },
        { tool: "x".repeat(513) },
      ]) {
        expect(isAction({ ...makeAction(), ...wrong }), JSON.stringify(wrong)).to.equal(false);
      }
    });
  });

  describe("of verdicts", () => {
    /** Whether gateway, harness and schema take a verdict. */
    const takenBy = (verdict: Json, phase: "input" | "output" = "output"): readonly boolean[] => {
      const bytes = Buffer.from(JSON.stringify(verdict));
      const taken = (read: () => unknown, Refusal: new (...values: never[]) => Error): boolean => {
        try {
          read();
          return true;
        } catch (error) {
          if (error instanceof Refusal) return false;
          throw error;
        }
      };
      return [
        taken(() => readPluginVerdict(bytes, "sample", phase), PluginBreach),
        taken(() => readVerdict(bytes, "sample", phase), PluginFault),
        isVerdict(verdict),
      ];
    };
    const finding: Finding = { rule: "sample.a", decision: "block", message: "m", severity: "low", risk: 1 };
    const redaction: Redaction = { rule: "sample.a", pointer: "/output/a", start: 0, end: 1, replacement: "" };
    const blocking = (...changes: readonly object[]): Json =>
      ({ decision: "block", findings: changes.map((change) => ({ ...finding, ...change })) }) as Json;
    const redacting = (...changes: readonly object[]): Json =>
      ({
        decision: "abstain",
        findings: [],
        redactions: changes.map((change) => ({ ...redaction, ...change })),
      }) as Json;

    const good: Json = {
      decision: "review",
      findings: [
        { ...finding, decision: "allow", pointer: "/arguments/a~1b" },
        { ...finding, decision: "review", approvals: 10, message: "é ключ 名 100 % C:\\user" },
      ],
      redactions: [{ ...redaction }],
    } satisfies Verdict;

    it("takes what the gateway takes", () => {
      const all: readonly Json[] = [
        good,
        { decision: "abstain", findings: [] },
        { decision: "allow", findings: [] },
        { decision: "abstain", findings: [{ ...finding, decision: "allow" }] },
        blocking({}, { decision: "allow" }),
        blocking(...Array(256).fill({ severity: "critical", risk: 100, rule: `sample.${"a".repeat(121)}` })),
        blocking({ message: "m".repeat(512), pointer: `/${"p".repeat(1_023)}` }),
        redacting(...Array(256).fill({ replacement: "[x]".padEnd(64) })),
      ];
      for (const verdict of all)
        expect(takenBy(verdict), JSON.stringify(verdict).slice(0, 200)).to.deep.equal([true, true, true]);
    });

    it("refuses what the gateway refuses", () => {
      const wrong: readonly Json[] = [
        null,
        [],
        {},
        { decision: "block" },
        { decision: "block", findings: [] },
        { decision: "review", findings: [] },
        { decision: "deny", findings: [] },
        { ...good, error: "x" },
        { ...good, decision: "block" },
        { ...good, decision: "abstain" },
        { decision: "allow", findings: {} },
        { decision: "block", findings: [null] },
        { ...good, redactions: null },
        { ...good, redactions: {} },
        blocking(...Array(257).fill({})),
        ...["sample", "Sample.a", "sample.", "sample.a.", "sample.é", `sample.${"a".repeat(122)}`, 1, ""].map((rule) =>
          blocking({ rule }),
        ),
        ...["", "m".repeat(513), "a\nb", "a\u200bb", "a\u00a0b", "a\u202e", "\ud800", "\u2800", "\\u{200b}", 1].map(
          (message) => blocking({ message }),
        ),
        ...["none", "HIGH", 3].map((severity) => blocking({ severity })),
        ...[-1, 101, 1.5, "1", null].map((risk) => blocking({ risk })),
        ...["arguments", "", "/~2", "/~", `/${"p".repeat(1_024)}`, "/\0", "/\ud800", 1].map((pointer) =>
          blocking({ pointer }),
        ),
        blocking({ approvals: 1 }),
        ...[0, 11, 1.5].map((approvals) => ({
          decision: "review",
          findings: [{ ...finding, decision: "review", approvals }],
        })),
        blocking({ more: 1 }),
        redacting(...Array(257).fill({})),
        ...["/output", "/arguments/a", "output/a", "/output/~"].map((pointer) => redacting({ pointer })),
        ...["é", "x".repeat(65), "\n", 1].map((replacement) => redacting({ replacement })),
        ...[-1, 0.5, "0"].map((start) => redacting({ start })),
        redacting({ end: 2 ** 53 }),
        redacting({ text: "x" }),
      ].map((each) => each as Json);
      for (const verdict of wrong)
        expect(takenBy(verdict), JSON.stringify(verdict).slice(0, 200)).to.deep.equal([false, false, false]);
    });

    it("leaves to the gateway, and to the harness, what no schema says", () => {
      const beyond: readonly (readonly [verdict: Json, phase: "input" | "output"])[] = [
        [blocking({ rule: "other.a" }), "input"],
        [blocking({ rule: "sampler.a" }), "input"],
        [blocking({ message: "𐐀".repeat(257) }), "input"],
        [redacting({ start: 1 }), "output"],
        [redacting({}), "input"],
        [{ decision: "abstain", findings: [], redactions: [] }, "input"],
      ];
      for (const [verdict, phase] of beyond) expect(takenBy(verdict, phase)).to.deep.equal([false, false, true]);
    });

    it("agrees with the gateway about any change of a good one", () => {
      const noise = fc.oneof(
        fc.constantFrom<Json>(
          ...decisions,
          ...severities,
          "abstain",
          "sample.b",
          "/arguments/x",
          "/output/x",
          null,
          [],
          {},
        ),
        fc.integer({ min: -2, max: 300 }),
        fc.string({ unit: "binary-ascii", maxLength: 8 }),
        fc.double({ noNaN: true }),
      );
      const paths = pathsIn(good);
      fc.assert(
        fc.property(fc.constantFrom(...paths), noise, fc.boolean(), (path, value, drop) => {
          const changed = changeAt(good, path, drop ? undefined : (JSON.parse(JSON.stringify(value)) as Json));
          const [byGateway, byHarness, bySchema] = takenBy(changed);
          expect(byHarness, JSON.stringify(changed)).to.equal(byGateway);
          expect(bySchema && !isBeyond(changed), JSON.stringify(changed)).to.equal(byGateway);
        }),
        { numRuns: 3_000 },
      );
    });

    for (const [what, text] of [
      ["a member given twice", '{"decision":"abstain","decision":"abstain","findings":[]}'],
      ["bytes that are no UTF-8", '{"decision":"abstain","findings":[],"\xff":1}'],
      ["a byte order mark", '\ufeff{"decision":"abstain","findings":[]}'],
      ["what is no JSON", "block"],
      ["nothing", ""],
    ] as const) {
      it(`refuses ${what}, as the gateway does`, () => {
        const bytes = Buffer.from(text, text.includes("\xff") ? "latin1" : "utf8");
        expect(() => readPluginVerdict(bytes, "sample", "input")).to.throw(PluginBreach);
        expect(() => readVerdict(bytes, "sample", "input")).to.throw(PluginFault, "malformed_verdict");
      });
    }
  });

  describe("of manifests", () => {
    const module = Buffer.from("a module");
    const whole: PluginManifest = {
      apiVersion: "gateway/v1",
      kind: "Plugin",
      metadata: {
        name: "sample",
        version: "1.0.0-rc.1+b2",
        title: "Ein Plugin",
        description: "d",
        authors: ["a", "b"],
        license: "MIT",
      },
      abi: "gateway-plugin/1",
      module: "plugin.wasm",
      digest: contentDigest(module),
      settings: {
        schema: { type: "object", additionalProperties: false, properties: { most: { type: "integer" } } },
        defaults: {},
      },
      sequence: 4,
      capabilities: [],
      limits: { fuel: 10_000, memory_pages: 256 },
    };
    const taken = (manifest: Json): readonly [gateway: boolean, schema: boolean] => {
      const files = new Map([
        ["plugin.wasm", module],
        ["plugin.yaml", Buffer.from(stringify(manifest))],
      ]);
      const folder = {
        path: "p",
        kind: "plugin",
        files,
        fileDigests: new Map(),
        digest: "sha256:00",
        signature: undefined,
      } as const;
      try {
        readPlugin("p", acceptUnverified(folder, null), {});
        return [true, isManifest(manifest)];
      } catch (error) {
        if (error instanceof GatewayError && error.code === "PLUGIN_INVALID") return [false, isManifest(manifest)];
        throw error;
      }
    };
    const required = new Set(["", "apiVersion", "kind", "metadata", "abi", "module", "digest"]);

    it("takes what the gateway takes, with and without each part that may be left out", () => {
      const json = whole as unknown as Json;
      expect(taken(json)).to.deep.equal([true, true]);
      for (const path of pathsIn(json)) {
        const [gateway, schema] = taken(changeAt(json, path, undefined));
        expect(schema, path.join("/")).to.equal(gateway);
      }
      expect(Object.keys(whole).filter((key) => !taken(changeAt(json, [key], undefined))[0])).to.have.members(
        [...required].filter((key) => key !== ""),
      );
    });

    it("refuses what the gateway refuses", () => {
      const changes: readonly (readonly [path: string, value: Json])[] = [
        ["apiVersion", "gateway/v2"],
        ["kind", "PolicyPack"],
        ["abi", "gateway-plugin/2"],
        ["more", 1],
        ["metadata/more", 1],
        ["metadata/name", "Sample"],
        ["metadata/name", "x".repeat(65)],
        ["metadata/version", "1.0"],
        ["metadata/version", "01.0.0"],
        ["metadata/title", ""],
        ["metadata/title", "   "],
        ["metadata/title", "x".repeat(161)],
        ["metadata/title", "a\u200bb"],
        ["metadata/authors", "a"],
        ["metadata/authors/0", 1],
        ["module", "../plugin.wasm"],
        ["module", "plugin.js"],
        ["digest", "sha256:00"],
        ["digest", `sha256:${"A".repeat(64)}`],
        ["settings/schema/additionalProperties", true],
        ["settings/schema/type", "array"],
        ["settings/more", 1],
        ["sequence", -1],
        ["sequence", 1.5],
        ["capabilities/0", "clock"],
        ["limits/fuel", 9_999],
        ["limits/fuel", 50_000_001],
        ["limits/memory_pages", 0],
        ["limits/memory_pages", 257],
        ["limits/more", 1],
      ];
      for (const [path, value] of changes) {
        const changed = changeAt(whole as unknown as Json, path.split("/"), value);
        expect(taken(changed), `${path}: ${JSON.stringify(value)}`).to.deep.equal([false, false]);
      }
    });

    it("leaves to the gateway what no schema says", () => {
      for (const [path, value] of [
        ["digest", `sha256:${"0".repeat(64)}`],
        ["module", "other.wasm"],
        ["settings/defaults", { most: "many" }],
        ["settings/schema/properties/most/type", "whole"],
      ] as const) {
        expect(taken(changeAt(whole as unknown as Json, path.split("/"), value)), path).to.deep.equal([false, true]);
      }
    });
  });
});

/** Whether a verdict breaks a rule that no schema says: foreign rules, and spans that end before they begin. */
function isBeyond(value: Json): boolean {
  if (!isJsonObject(value)) return Array.isArray(value) && value.some(isBeyond);
  const { rule, start, end } = value;
  if (typeof rule === "string" && !rule.startsWith("sample.")) return true;
  if (typeof start === "number" && typeof end === "number" && start >= end) return true;
  return Object.values(value).some(isBeyond);
}

/** The way to each member and item in a value. */
function pathsIn(value: Json, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== "object" || value === null) return [path];
  const below = Object.entries(value).flatMap(([key, each]) => pathsIn(each as Json, [...path, key]));
  return path.length === 0 ? below : [path, ...below];
}

/** A copy with another value at a place, or without what was there. */
function changeAt(value: Json, [key, ...rest]: readonly string[], changed: Json | undefined): Json {
  if (key === undefined) return changed ?? null;
  const list = Array.isArray(value);
  const copy: Record<string, Json> = { ...(value as Record<string, Json>) };
  if (rest.length === 0 && changed === undefined) delete copy[key];
  else copy[key] = rest.length === 0 ? (changed as Json) : changeAt(copy[key] as Json, rest, changed);
  return list ? Object.values(copy) : copy;
}
