import type { Static, TArray, TSchema, TString, TUnsafe } from "@sinclair/typebox";
import { actionEffects } from "../action/action-fact.ts";
import { capabilities } from "../action/capability.ts";
import { ticketStandings } from "../action/capability-ticket.ts";
import { decisions } from "../action/decision.ts";
import { definitionFindings, phases, protocols } from "../action/envelope.ts";
import type { Json, JsonObject } from "../action/json.ts";
import { maxApprovals, maxTaints, modes, severities } from "../action/policy.ts";
import { roles } from "../action/role.ts";
import { maxPastActions } from "../action/session-state.ts";
import { statementMembers } from "../config/fact-schema.ts";
import { editorSchema } from "../config/reference.ts";
import { enumeration, flag, integer, jsonObject, list, object, optional, string } from "../config/schema.ts";
import { Type } from "../config/type.ts";

/** The schemas of every YAML file of a pack and of a plugin. */

const maxInteger = Number.MAX_SAFE_INTEGER;

function printable(description: string, maxLength: number, options: { readonly default?: string } = {}): TString {
  const expected = `printable text of 1 to ${maxLength} characters`;
  return string(description, { format: "printable", minLength: 1, maxLength, expected, ...options });
}

function timestamp(description: string): TString {
  return string(description, { format: "timestamp" });
}

function anyJson(description: string, fallback: Json): TUnsafe<Json> {
  return Type.Unsafe<Json>({ description, default: fallback });
}

const expression = (description: string): TUnsafe<string | boolean> =>
  Type.Unsafe<string | boolean>({
    anyOf: [{ type: "string" }, { type: "boolean" }],
    description,
    expected: "an expression",
  });

const names = (description: string): TUnsafe<string | readonly string[]> =>
  Type.Unsafe<string | readonly string[]>({
    anyOf: [
      { type: "string", minLength: 1, maxLength: 256 },
      { type: "array", items: { type: "string", minLength: 1, maxLength: 256 } },
    ],
    description,
    expected: "a name or glob of 1 to 256 characters, or a list of them",
  });

const ruleId = (description: string): TString =>
  string(description, {
    maxLength: 128,
    pattern: "^[a-z0-9][a-z0-9-]*(\\.[a-z0-9][a-z0-9-]*)*$",
    expected: "words of a–z, 0–9 and `-`, joined by `.`",
  });

const taintName = string("The taint.", { format: "taint" });

/** The name of a pack or plugin. */
export const extensionName = {
  maxLength: 64,
  pattern: "^[a-z0-9][a-z0-9-]*$",
  expected: "a word of a–z, 0–9 and `-`",
} as const;

/** The `metadata` of every manifest. */
export const metadataSchema = object("Identity and description.", {
  name: string("The name.", extensionName),
  version: string("The semantic version.", {
    maxLength: 64,
    pattern: "^(0|[1-9]\\d*)\\.(0|[1-9]\\d*)\\.(0|[1-9]\\d*)(-[0-9A-Za-z.-]+)?(\\+[0-9A-Za-z.-]+)?$",
    expected: "a semantic version like `1.2.3`",
  }),
  title: printable("The title.", 160),
  description: optional(printable("The description.", 1_024)),
  authors: list("The authors.", printable("One author.", 160), { default: [] }),
  license: optional(printable("The license.", 160)),
});

const settingsSchema = optional(
  object("The settings that the operator may change.", {
    schema: jsonObject("A JSON Schema of `type: object` with `additionalProperties: false`.", { default: {} }),
    defaults: jsonObject("The default values.", { default: {} }),
  }),
);

/** The `sequence` of every manifest. */
export const sequenceSchema = integer(
  "Increases with each release: a lower one is refused once a higher one was loaded.",
  {
    minimum: 0,
    maximum: maxInteger,
    default: 0,
  },
);

/** `pack.yaml`. */
export const packSchema = object("A policy pack.", {
  apiVersion: enumeration("The version of the format.", ["gateway/v1"]),
  kind: enumeration("The kind of the file.", ["PolicyPack"]),
  metadata: metadataSchema,
  compatibility: optional(
    object("The versions that the pack needs.", {
      gateway: optional(
        string("The lowest version of the gateway, like `>=0.1.0`.", {
          maxLength: 64,
          pattern: "^>=\\d+\\.\\d+\\.\\d+$",
          expected: "a lowest version like `>=0.1.0`",
        }),
      ),
      envelope: integer("The version of the action envelope.", { minimum: 1, maximum: 1, default: 1 }),
    }),
  ),
  namespace: string("The prefix of all rule ids; no two packs may share one.", {
    maxLength: 64,
    pattern: "^[a-z0-9][a-z0-9-]*(\\.[a-z0-9][a-z0-9-]*)*$",
    expected: "words joined by `.`",
  }),
  settings: settingsSchema,
  sequence: sequenceSchema,
  issued_at: optional(timestamp("The time of release.")),
  expires_at: optional(timestamp("The pack is refused from then on.")),
  tighten_only: flag("Its `allow` counts as abstain.", { default: false }),
  rules: list("Globs of the rule files, relative to the pack.", printable("One glob.", 128), {
    default: ["rules/*.yaml"],
  }),
});
export type PackForm = Static<typeof packSchema>;

/** `plugin.yaml`. */
export const pluginSchema = object("A plugin.", {
  apiVersion: enumeration("The version of the format.", ["gateway/v1"]),
  kind: enumeration("The kind of the file.", ["Plugin"]),
  metadata: metadataSchema,
  abi: enumeration("The interface between gateway and module.", ["gateway-plugin/1"]),
  module: string("The file of the module.", {
    maxLength: 64,
    pattern: "^[a-z0-9][a-z0-9-]*\\.wasm$",
    expected: "a file name like `plugin.wasm`",
  }),
  digest: string("The digest of the module.", { format: "digest" }),
  settings: settingsSchema,
  sequence: sequenceSchema,
  capabilities: list("Must be empty: there are none yet.", printable("One capability.", 64), { default: [] }),
  limits: object("The limits of one call.", {
    fuel: integer("Units of fuel.", { minimum: 10_000, maximum: 50_000_000, default: 5_000_000 }),
    memory_pages: integer("Pages of 64 KiB.", { minimum: 1, maximum: 256, default: 64 }),
  }),
});

const exceptionSchema = object("A named permission that lifts the rule for some actions.", {
  id: ruleId("The id of the exception."),
  reason: printable("The reason.", 1_024),
  approved_by: printable("The approver.", 160),
  expires: timestamp("Without effect from then on."),
  when: optional(expression("The actions that it lifts the rule for; all by default.")),
});

export const matchSchema = object("The actions that the rule is about; all keys must agree.", {
  protocol: optional(names("Protocols.")),
  phase: optional(names("Phases; `input` by default.")),
  capability: optional(names("Capabilities.")),
  "principal.role": optional(names("Roles.")),
  "session.transport": optional(names("Transports.")),
  effect: optional(names("Effects: of the facts, else of the capability.")),
  fact: optional(
    names(
      "Kinds of facts, one of which must be there; `calls`: tool calls that a model's answer asks for; `none`: an action without any. In phase `input` such a rule also judges the calls of an answer.",
    ),
  ),
  tool: optional(names("Tools.")),
  target: optional(names("Upstreams.")),
  "principal.key_id": optional(names("Key ids.")),
  tenant: optional(names("Tenants.")),
});

export const ruleSchema = object("A rule.", {
  id: ruleId("The id; begins with the pack's namespace."),
  title: printable("The title.", 160),
  decision: enumeration("The decision where the rule matches.", decisions),
  severity: optional(enumeration("The severity; derived from the decision by default.", severities)),
  risk: optional(integer("The risk; derived from the severity by default.", { minimum: 0, maximum: 100 })),
  approvals: optional(
    object("The quorum of a review.", {
      required: integer("The number of reviewers who must approve.", { minimum: 1, maximum: maxApprovals }),
    }),
  ),
  session_risk: optional(integer("The points added to the session's risk.", { minimum: 0, maximum: 100 })),
  taints: list("The taints added to the session.", taintName, { default: [], maxItems: maxTaints }),
  require_ticket: flag("A capability ticket that covers the action lifts the rule.", { default: false }),
  match: matchSchema,
  when: optional(expression("CEL: the rule matches where it is true.")),
  unless: optional(expression("CEL: the rule does not match where it is true.")),
  message: optional(printable("The message, with `{{ CEL }}` interpolated.", 1_024)),
  remediation: optional(printable("The advice to whoever is held or blocked.", 1_024)),
  mode: enumeration("`shadow` records the rule without counting it.", modes, { default: "enforce" }),
  references: list("References such as OWASP and CWE.", printable("One reference.", 256), { default: [] }),
  expires: optional(timestamp("The rule matches nothing from then on.")),
  exceptions: list("The exceptions.", exceptionSchema, { default: [] }),
});
export type RuleForm = Static<typeof ruleSchema>;

const label = (description: string, fallback: string): TString => printable(description, 256, { default: fallback });

const labels = (description: string): ReturnType<typeof list<TString>> =>
  list(description, printable("One of them.", 256), { default: [] });

const age = integer("Whole seconds before the action.", { minimum: 0, maximum: 31_536_000, default: 0 });
const count = (description: string): ReturnType<typeof integer> =>
  integer(description, { minimum: 0, maximum: maxInteger, default: 0 });

/** Facts of a kind that comes in lists. */
const runs = (description: string): TArray<TUnsafe<JsonObject>> =>
  list(description, jsonObject("One of them, with every member."), { maxItems: 20 });

const actionMembers = {
  time: string("The time of the action.", { format: "timestamp", default: "2026-01-01T00:00:00.000Z" }),
  tenant: label("The tenant.", "default"),
  principal: object("The principal.", {
    id: label("Its id.", "principal-v1-test"),
    role: enumeration("Its role.", roles, { default: "operator" }),
    key_id: label("The id of its key.", "test"),
  }),
  session: object("The session.", {
    id: label("Its id.", "session-v1-test"),
    transport: enumeration("Its transport.", ["http", "sse"], { default: "http" }),
    label: optional(printable("Its label.", 256)),
  }),
  task: optional(printable("The task.", 256)),
  protocol: enumeration("The protocol.", protocols, { default: "mcp" }),
  phase: enumeration("The phase.", phases, { default: "input" }),
  tool: label("The tool.", "tool"),
  target: label("The upstream.", "upstream"),
  capability: enumeration("The capability.", capabilities, { default: "execute" }),
  arguments: anyJson("The arguments.", {}),
  continuation: optional(jsonObject("The client's continuation of an interrupted request.")),
  output: anyJson("The upstream's answer, in phase `output`.", null),
  tool_definition: optional(
    object("The tool as its upstream described it.", {
      digest: label("Its digest.", `sha256:${"0".repeat(64)}`),
      annotations: jsonObject("Its annotations.", { default: {} }),
      findings: list("The reasons for which it is withheld.", enumeration("One finding.", definitionFindings), {
        default: [],
      }),
      title: optional(string("Its title, in phase `list`.", { format: "argument" })),
      description: optional(string("Its description, in phase `list`.", { format: "argument" })),
      input_schema: optional(jsonObject("The schema of its arguments, in phase `list`.")),
      output_schema: optional(jsonObject("The schema of its results, in phase `list`.")),
    }),
  ),
  untrusted: flag("The operator marked the tool as a source of untrusted content.", { default: false }),
  ticket: optional(
    object("The capability ticket presented with it.", {
      id: label("Its id.", "tkt_test"),
      standing: enumeration("Its status.", ticketStandings, { default: "valid" }),
    }),
  ),
  client: object("The client.", {
    name: label("Its name.", "test"),
    version: label("Its version.", "1.0.0"),
    address: label("Its address.", "127.0.0.1"),
  }),
  facts: optional(
    object("What the action does, and the hosts and paths that it reaches; derived from the arguments by default.", {
      effect: optional(enumeration("The effect; that of the capability by default.", actionEffects)),
      hosts: labels("Hosts."),
      paths: labels("Paths."),
      more: flag("There are more.", { default: false }),
      shell: optional(jsonObject("A command line, with every member.")),
      git: optional(runs("Runs of git.")),
      sql: optional(jsonObject("SQL, with every member.")),
      url: optional(runs("URLs.")),
      path: optional(runs("Paths.")),
      address: optional(runs("Addresses.")),
      calls: optional(runs("Tool calls that a model's answer asks for.")),
    }),
  ),
  session_state: optional(
    object("The state of the session before the action; a new session by default.", {
      risk: count("Risk points."),
      actions: count("Actions."),
      reviews: count("Reviews."),
      tools: count("Different tools."),
      new_tool: flag("The session has not used this tool.", { default: true }),
      taints: list(
        "The taints, each with its source.",
        object("One taint.", {
          name: taintName,
          target: label("The upstream.", "upstream"),
          tool: label("The tool.", "tool"),
          action: label("The action.", "019b7600-0000-7000-8000-000000000001"),
          age,
        }),
        { default: [], maxItems: 64 },
      ),
      secret_left: count("The percentage of a secret that left."),
      untrusted_values: labels("The hosts, paths and addresses of the action that an untrusted answer named first."),
    }),
  ),
};

/** A partial action of a plugin's test. */
export const testActionSchema = object("The action under test.", actionMembers);

/** A partial action of a pack's test: rules see the session's earlier actions too. */
export const testEnvelopeSchema = object("The action under test.", {
  ...actionMembers,
  stated: optional(
    object(
      "The operator's statement of the arguments, which are then parsed as those of a real call.",
      statementMembers,
    ),
  ),
  history: list(
    "The session's earlier actions, newest first.",
    object("One of them.", {
      age,
      protocol: enumeration("Its protocol.", protocols, { default: "mcp" }),
      tool: label("Its tool.", "tool"),
      target: label("Its upstream.", "upstream"),
      capability: enumeration("Its capability.", capabilities, { default: "execute" }),
      decision: enumeration("The decision about it.", decisions, { default: "allow" }),
      dispatched: optional(flag("It was dispatched; by default where it was allowed.")),
      hosts: labels("The hosts that it reached."),
      paths: labels("The paths that it reached."),
    }),
    { default: [], maxItems: maxPastActions },
  ),
});
export type TestEnvelopeForm = Static<typeof testEnvelopeSchema>;

const redactionMembers = object("One expected redaction; every given member must match.", {
  rule: optional(printable("Its rule.", 1_024)),
  pointer: optional(printable("Its place.", 1_024)),
  text: optional(printable("The redacted text.", 1_024)),
  replacement: optional(printable("Its replacement.", 1_024)),
});
const expectedRedactionSchema = Type.Unsafe<Static<typeof redactionMembers>>({
  ...redactionMembers,
  minProperties: 1,
  expected: "a redaction with `rule`, `pointer`, `text` or `replacement`",
});

export const expectationSchema = object("The expected verdict.", {
  decision: enumeration("The decision.", [...decisions, "abstain"]),
  rules: labels("Rules with a finding."),
  not_rules: labels("Rules without a finding."),
  errors: integer("1 where the policy must fail.", { minimum: 0, maximum: 1, default: 0 }),
  message: optional(printable("Text that some finding's message contains.", 1_024)),
  approvals: optional(integer("The number of reviewers of a review.", { minimum: 1, maximum: maxApprovals })),
  redactions: optional(list("All redactions, in any order.", expectedRedactionSchema)),
});
export type ExpectationForm = Static<typeof expectationSchema>;

function caseMembers<Action extends TSchema>(action: Action) {
  return {
    name: printable("The name of the case.", 256),
    each: optional(
      list("One case per row, whose members replace those of the action.", action, { minItems: 1, maxItems: 1_000 }),
    ),
    settings: jsonObject("Settings that replace the defaults.", { default: {} }),
    expect: expectationSchema,
  };
}

/** A case of a pack's tests. */
export const packCaseSchema = object("A test case.", {
  ...caseMembers(testEnvelopeSchema),
  envelope: optional(testEnvelopeSchema),
});

/** A case of a plugin's tests. */
export const pluginCaseSchema = object("A test case.", {
  ...caseMembers(testActionSchema),
  action: optional(testActionSchema),
});

/** The JSON Schemas for editors, by file name: those of packs and of plugins. */
export function editorSchemas(): ReadonlyMap<string, JsonObject> {
  const rulesFile = object("Rules of a policy pack.", { rules: list("The rules.", ruleSchema) });
  const packTests = object("Tests of a policy pack.", { cases: list("The cases.", packCaseSchema) });
  const pluginTests = object("Tests of a plugin.", { cases: list("The cases.", pluginCaseSchema) });
  return new Map([
    ["pack.schema.json", editorSchema("pack.yaml of a policy pack", packSchema)],
    ["rules.schema.json", editorSchema("Rules of a policy pack", rulesFile)],
    ["pack-tests.schema.json", editorSchema("Tests of a policy pack", packTests)],
    ["plugin.schema.json", editorSchema("plugin.yaml of a plugin", pluginSchema)],
    ["plugin-tests.schema.json", editorSchema("Tests of a plugin", pluginTests)],
  ]);
}
