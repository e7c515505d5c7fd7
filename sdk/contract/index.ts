export type { ActionEnvelope, Capability, Phase, PluginInput, Protocol, Role } from "./action.ts";
export type { Json, JsonObject } from "./json.ts";
export type { PluginManifest } from "./manifest.ts";
export type { Expectation, ExpectedRedaction, TestAction, TestCase, TestFile } from "./test-file.ts";
export type { Decision, Finding, Redaction, Severity, Verdict } from "./verdict.ts";
