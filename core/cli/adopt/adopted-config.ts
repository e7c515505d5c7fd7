import { type Document, isMap, isScalar, type Pair, parseDocument } from "yaml";
import type { Json, JsonObject } from "../../action/json.ts";
import { annotateConfig } from "../../config/local.ts";
import { installationForm } from "../installation.ts";
import { starterPacks } from "../starter.ts";
import type { Proposal } from "./proposal.ts";

/** A server as it is adopted: its entry of `upstreams`, and what is proposed for each of its tools. */
export interface AdoptedServer {
  /** The name that its client gives it. */
  readonly name: string;
  readonly upstream: JsonObject;
  /** By the names of the tools. */
  readonly proposals: ReadonlyMap<string, Proposal>;
}

interface AdoptedConfig {
  readonly tenant: string;
  readonly firstPort: number;
  readonly keyHashes: Readonly<Record<string, string>>;
  readonly servers: readonly AdoptedServer[];
}

/** The pack that allows every action while all others are in shadow mode. */
export const trialPack = "trial";

const intro =
  "The gateway's configuration, as `gateway adopt` proposes it. Read `upstreams` before you trust it: the word behind each tool " +
  "is what the gateway takes it to do, and its comment says why. Nothing is held yet: the pack `trial` allows everything, and " +
  "the others are in shadow mode. `gateway adopt --report` says what they would have held, and proposes the next step. " +
  "Relative paths start at this file's folder. `gateway config reference` prints every setting.";

/** The text of `gateway.yaml`: the reason of each proposal stands in a comment beside it. */
export function adoptedConfig({ tenant, firstPort, keyHashes, servers }: AdoptedConfig): string {
  const packs = [
    { name: trialPack, mode: "enforce" as const },
    ...starterPacks.map((name) => ({ name, mode: "shadow" as const })),
  ];
  const upstreams = servers.map(({ upstream, proposals }) => ({ ...upstream, ...statementsOf(proposals) }));
  const form = {
    ...installationForm({ tenant, firstPort, keyHashes, upstreams, packs }),
    sessions: { risk: { mode: "shadow" }, drift: { mode: "shadow" } },
  };
  return addReasons(annotateConfig(form, intro), servers);
}

function statementsOf(proposals: ReadonlyMap<string, Proposal>): JsonObject {
  const facts = [...proposals].flatMap(([tool, proposal]) =>
    proposal.facts === null ? [] : [[tool, proposal.facts] as const],
  );
  return {
    ...(proposals.size === 0
      ? {}
      : { capabilities: Object.fromEntries(Array.from(proposals, ([tool, { capability }]) => [tool, capability])) }),
    ...(facts.length === 0 ? {} : { facts: Object.fromEntries(facts) as Readonly<Record<string, Json>> }),
  };
}

function addReasons(text: string, servers: readonly AdoptedServer[]): string {
  const document = parseDocument(text);
  servers.forEach(({ proposals }, index) => {
    for (const { key, value } of pairsAt(document, index, "capabilities")) {
      const reasons = proposals.get(String(key))?.reasons ?? [];
      if (isScalar(value)) value.comment = ` ${reasons.join("; ")}`;
    }
    for (const { key } of pairsAt(document, index, "facts")) {
      const reasons = proposals.get(String(key))?.factReasons ?? [];
      if (isScalar(key)) key.commentBefore = ` ${reasons.join("; ")}`;
    }
  });
  return document.toString({ lineWidth: 0 });
}

function pairsAt(document: Document, index: number, member: string): readonly Pair[] {
  const found = document.getIn(["upstreams", index, member]);
  return isMap(found) ? found.items : [];
}

/** The files of the pack `trial`. */
export const trialPackFiles: Readonly<Record<string, string>> = {
  "pack.yaml": `apiVersion: gateway/v1
kind: PolicyPack
metadata:
  name: trial
  version: 1.0.0
  title: Everything is allowed while the other packs are tried out
  description: Take it out of gateway.yaml once the others are in mode \`enforce\`; what none of them allows is held then.
  authors: [gateway adopt]
  license: Apache-2.0
compatibility:
  envelope: 1
namespace: trial
`,
  "rules/trial.yaml": `rules:
  - id: trial.allow
    title: Everything is allowed while the other packs are tried out
    decision: allow
    message: "\`{{ tool }}\` on \`{{ target }}\` is allowed while the other packs are tried out"
`,
  "tests/trial.yaml": `cases:
  - name: everything runs
    envelope: { tool: anything, capability: delete }
    expect: { decision: allow, rules: [trial.allow] }
`,
};

/** The text of `servers.env`: a variable a line, quoted for shells. */
export function environmentFile(secrets: ReadonlyMap<string, string>): string {
  const lines = Array.from(secrets, ([name, value]) => `${name}='${value.replaceAll("'", "'\\''")}'`);
  return `${[
    "# Secrets of MCP servers, which `gateway adopt` moved here. The gateway reads them from its environment:",
    "# set -a; . ./servers.env; set +a",
    ...lines,
  ].join("\n")}\n`;
}
