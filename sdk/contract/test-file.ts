import type { ActionEnvelope, ActionFacts, Capability, Phase, Protocol, Role, SessionState } from "./action.ts";
import type { Json, JsonObject } from "./json.ts";
import type { Verdict } from "./verdict.ts";

/** A file of a plugin's `tests/*.yaml`. */
export interface TestFile {
  readonly cases: readonly TestCase[];
}

export interface TestCase {
  readonly name: string;
  /** Omitted members default to an operator's MCP call. */
  readonly action?: TestAction;
  /** One case of each row, the row's members in place of the action's; 1 to 1,000. */
  readonly each?: readonly TestAction[];
  /** In place of the manifest's defaults, member by member. */
  readonly settings?: JsonObject;
  readonly expect: Expectation;
}

/** A partial action; identifiers in snake_case. */
export interface TestAction {
  /** RFC 3339 with a zone. */
  readonly time?: string;
  readonly tenant?: string;
  readonly principal?: { readonly id?: string; readonly role?: Role; readonly key_id?: string };
  readonly session?: { readonly id?: string; readonly transport?: "http" | "sse"; readonly label?: string };
  readonly task?: string;
  readonly protocol?: Protocol;
  readonly phase?: Phase;
  readonly tool?: string;
  readonly target?: string;
  readonly capability?: Capability;
  readonly arguments?: Json;
  readonly continuation?: JsonObject;
  readonly output?: Json;
  readonly tool_definition?: Partial<NonNullable<ActionEnvelope["tool_definition"]>>;
  readonly untrusted?: boolean;
  readonly client?: Partial<ActionEnvelope["client"]>;
  /** Derived from the arguments by default. */
  readonly facts?: Partial<ActionFacts>;
  /** A new session by default. */
  readonly session_state?: Partial<Omit<SessionState, "taints">> & { readonly taints?: readonly TestTaint[] };
}

/** At most 64 in a session. */
export interface TestTaint {
  readonly name: string;
  readonly target?: string;
  readonly tool?: string;
  readonly action?: string;
  /** Whole seconds before the action. */
  readonly age?: number;
}

export interface Expectation {
  readonly decision: Verdict["decision"];
  /** Rules with a finding. */
  readonly rules?: readonly string[];
  /** Rules without one. */
  readonly not_rules?: readonly string[];
  /** 1 where the plugin must fail. */
  readonly errors?: 0 | 1;
  /** A part of some finding's message. */
  readonly message?: string;
  /** The number of reviewers that a review requires, 1 to 10. */
  readonly approvals?: number;
  /** All redactions, in any order; every given member must match. */
  readonly redactions?: readonly ExpectedRedaction[];
}

/** At least one member. */
export interface ExpectedRedaction {
  readonly rule?: string;
  readonly pointer?: string;
  /** The redacted text. */
  readonly text?: string;
  readonly replacement?: string;
}
