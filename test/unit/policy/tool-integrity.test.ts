import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { parse } from "yaml";
import { compilePack } from "../../../core/policy/pack.ts";
import { repositoryRoot } from "../../check/source-tree.ts";
import { makeAction } from "../../support/action.ts";
import { hostileTexts } from "../../support/hostile-text.ts";
import { type ImmediatePolicy, immediate } from "../../support/plugin-port.ts";
import { optionsFor } from "../../support/policy-pack.ts";

type Listing = readonly [name: string, description: string, properties: Readonly<Record<string, string>>];

const corpus = join(repositoryRoot, "test/corpus/definition/benign.yaml");

function listed(tool: string, description: string, properties: Readonly<Record<string, string>> = {}) {
  const members = Object.entries(properties).map(([name, text]) => {
    return [name, { type: "string", ...(text === "" ? {} : { description: text }) }];
  });
  return makeAction({
    phase: "list",
    tool,
    tool_definition: {
      digest: `sha256:${"0".repeat(64)}`,
      annotations: {},
      description,
      input_schema: { type: "object", properties: Object.fromEntries(members) },
    },
  });
}

describe("policy-packs/tool-integrity", () => {
  let policy: ImmediatePolicy;
  before(async () => {
    const compiled = await compilePack(await optionsFor(join(repositoryRoot, "policy-packs/tool-integrity")));
    policy = immediate(compiled.pack.policy);
  });

  it("lets honest definitions be seen: of 200 and more, at most one of a hundred is held", () => {
    const groups = parse(readFileSync(corpus, "utf8")) as Readonly<Record<string, readonly Listing[]>>;
    const tools = Object.values(groups).flat();
    expect(tools.length).to.be.at.least(200);
    const held = tools.filter((tool) => policy.evaluate(listed(...tool)).decision !== "abstain");
    expect(held.length / tools.length, held.map(([name]) => name).join(", ")).to.be.at.most(0.01);
  });

  for (const [title, text] of hostileTexts()) {
    it(`reads a description of 6,000 characters of ${JSON.stringify(title)} within its budget`, () => {
      expect(policy.evaluate(listed("add", text.slice(0, 6_000)))).not.to.have.property("error");
    });
  }
});
