import { Argument, Option } from "commander";
import { capabilities } from "../../action/capability.ts";
import { decisions } from "../../action/decision.ts";
import { phases, protocols } from "../../action/envelope.ts";
import type { ExtensionKind } from "../../trust/verified-extension.ts";
import { adminCommand } from "./admin-command.ts";
import { adminOption, jsonOption, parseJson, parseJsonObject, parseTime, privateHostOption } from "./argument.ts";
import type { CommandDescription, CommandGroup, LeafCommand } from "./description.ts";
import { trustCommand } from "./trust.ts";

// Loaded with the command that calls one of them.
const policyOperations = async () => (await import("../../policy/operation.ts")).policyOperations;

const target = new Argument("<reference>", "`oci://host[:port]/name[:tag]`");
const source = new Argument(
  "<reference>",
  "`oci://host[:port]/name[:tag]` or `@sha256:<hex>`, or an npm tarball: `https://host/name.tgz#sha512-<base64>`",
);
/** The words for each kind in help, and the folder in its examples. */
const wording: Readonly<
  Record<ExtensionKind, { readonly noun: string; readonly folder: string; readonly example: string }>
> = {
  pack: { noun: "a pack", folder: "folder of the pack", example: "acme-rules" },
  plugin: { noun: "a plugin", folder: "folder of the plugin", example: "acme-scan" },
  engine: { noun: "an engine's policies", folder: "folder of the policies", example: "acme-cedar" },
};

const keylessServices: readonly Option[] = [
  new Option(
    "--fulcio <url>",
    "with --keyless: certificate authority (default: Sigstore's public one, and its public log)",
  ),
  new Option("--rekor <url>", "with --keyless: transparency log"),
  new Option("--tsa <url>", "with --keyless: time stamping authority"),
];

/** Commands that write, test and sign policy, and try actions on it. */
export const authorCommands: readonly CommandDescription[] = [
  {
    name: "pack",
    summary: "Create, test, sign and verify policy packs",
    commands: [
      {
        name: "new",
        summary: "Create a policy pack with one rule and its tests",
        arguments: [new Argument("<folder>", "new folder; its last part names the pack and prefixes its rules")],
        options: [jsonOption],
        examples: `
# a pack with one rule, to start from
gateway pack new acme-rules`,
        load: async () => (await import("../pack.ts")).createPack,
      },
      {
        name: "lint",
        summary: "Check a pack's manifest, rules and expressions; exit 1 if there are faults",
        arguments: [extensionFolder("pack")],
        options: [new Option("--watch", "check again after each change"), jsonOption],
        examples: `
# every fault, again after each change
gateway pack lint acme-rules --watch`,
        load: async () => (await import("../pack.ts")).lintPackFolder,
      },
      {
        name: "test",
        summary: "Run a pack's tests; exit 1 if one fails",
        arguments: [extensionFolder("pack")],
        options: [new Option("--watch", "run again after each change"), jsonOption],
        examples: `
# run the pack's own tests
gateway pack test acme-rules`,
        load: async () => (await import("../pack.ts")).testPackFolder,
      },
      ...signingCommands("pack"),
    ],
  },
  {
    name: "plugin",
    summary: "Create, build, test, sign and verify WASM plugins",
    commands: [
      {
        name: "new",
        summary: "Create a plugin project that builds, tests and signs, in AssemblyScript with npm or in C or Rust",
        arguments: [new Argument("<folder>", "new folder; its last part names the plugin")],
        options: [
          new Option("--language <name>", "AssemblyScript, C or Rust").choices(["as", "c", "rust"]).default("as"),
          new Option("--sdk <spec>", "npm spec of agent-governance-sdk (default: this version)"),
          new Option("--gateway <spec>", "npm spec of agent-governance-gateway (default: this version)"),
          jsonOption,
        ],
        examples: `
# a plugin in AssemblyScript with one rule, to start from
gateway plugin new acme-scan
# the same in C, for clang
gateway plugin new acme-scan --language c`,
        load: async () => (await import("../plugin-new.ts")).createPlugin,
      },
      {
        name: "build",
        summary:
          "Compile a plugin from AssemblyScript, C or Rust, write its digest into plugin.yaml and load it in the sandbox; without a source use the existing module",
        arguments: [extensionFolder("plugin")],
        options: [new Option("--watch", "build again after each change, and run the tests"), jsonOption],
        examples: `
# compile it, again after each change
gateway plugin build acme-scan --watch`,
        load: async () => (await import("../plugin-build.ts")).build,
      },
      {
        name: "test",
        summary: "Run a plugin's tests in the sandbox and report the fuel of each; exit 1 if one fails",
        arguments: [extensionFolder("plugin")],
        options: [new Option("--watch", "run again after each change"), jsonOption],
        examples: `
# run the plugin's own tests, in its sandbox
gateway plugin test acme-scan`,
        load: async () => (await import("../plugin-test.ts")).testPluginFolder,
      },
      {
        name: "bench",
        summary:
          "Measure a call in the sandbox and in the bare module, which keeps its state, with the smallest, middle and largest test input",
        arguments: [extensionFolder("plugin")],
        options: [jsonOption],
        examples: `
# the time of a call, and its fuel against the limit
gateway plugin bench acme-scan`,
        load: async () => (await import("../plugin-bench.ts")).bench,
      },
      ...signingCommands("plugin"),
      adminCommand({
        name: "list",
        summary: "List the loaded plugins and their signers",
        operation: async () => (await policyOperations()).listPlugins,
        examples: `
# the loaded plugins, and who signed each
gateway plugin list`,
        view: async () => (await import("../view/policy.ts")).pluginTable,
      }),
    ],
  },
  {
    name: "engine",
    summary: "Test, sign and verify policies of other engines",
    commands: [
      {
        name: "test",
        summary: "Check the policies against their schema and run their tests; exit 1 if there are faults or one fails",
        arguments: [extensionFolder("engine")],
        options: [jsonOption],
        examples: `
# check a folder of Cedar policies, and run its tests
gateway engine test acme-cedar`,
        load: async () => (await import("../engine-test.ts")).testEngineFolder,
      },
      ...trustCommands("engine"),
      ...distributionCommands("engine"),
    ],
  },
  trustCommand,
  {
    name: "test-action",
    summary: "Evaluate one action against the loaded policies, without running it",
    options: [
      new Option("--tool <name>", "tool, as its upstream names it").makeOptionMandatory(),
      new Option("--target <name>", "upstream, or `provider/model`").makeOptionMandatory(),
      new Option("--protocol <name>", "kind of action").choices(protocols).default("mcp"),
      new Option("--phase <name>", "phase of the evaluation").choices(phases).default("input"),
      new Option("--capability <name>", "effect of the tool").choices(capabilities).default("execute"),
      new Option("--arguments <json>", "arguments, an object").argParser(parseJsonObject).default({}),
      new Option("--output <json>", "output of the tool, in phase `output`").argParser(parseJson),
      new Option("--session <label>", "session of the action"),
      new Option("--expect <decision>", "exit 1 unless this is decided").choices(decisions),
      new Option("--explain", "show what the rules checked, and the nearest rules that did not decide"),
      adminOption,
      jsonOption,
    ],
    examples: `
# the decision on this call
gateway test-action --tool write_note --target demo --capability write --arguments '{"title":"plan"}'
# with the reasons, part by part
gateway test-action --tool write_note --target demo --capability write --explain
# as a check in a build: exit 1 unless it is blocked
gateway test-action --tool delete_note --target demo --capability delete --expect block`,
    load: async () => (await import("../test-action.ts")).testAction,
  },
  {
    name: "simulate",
    summary: "Evaluate a file of actions against the loaded policies, without running them",
    arguments: [
      new Argument("<file>", "YAML or JSON: `actions`, a list of `{tool, target, capability, arguments, …, expect}`"),
    ],
    options: [
      new Option("--explain", "explain each decision"),
      adminOption,
      new Option("--json", "print a line of JSON for each action"),
    ],
    examples: `
# a file of actions, each with the expected decision
gateway simulate actions.yaml`,
    load: async () => (await import("../simulate.ts")).simulate,
  },
  {
    name: "policies",
    summary: "Inspect the loaded policies",
    commands: [
      adminCommand({
        name: "list",
        summary: "List the loaded policies and their signers",
        operation: async () => (await policyOperations()).listPolicies,
        examples: `
# every policy in force
gateway policies list
# only unsigned policies
gateway policies list --json | jq 'select(.signer == null)'`,
        view: async () => (await import("../view/policy.ts")).policyTable,
      }),
      adminCommand({
        name: "shadow",
        summary: "List what rules in shadow mode would have held or blocked since the gateway started",
        operation: async () => (await policyOperations()).listShadowDecisions,
        examples: `
# what shadow mode would have held or blocked
gateway policies shadow`,
        view: async () => (await import("../view/policy.ts")).shadowList,
      }),
    ],
  },
];

/** The commands that packs and plugins share. */
function signingCommands(kind: ExtensionKind): readonly CommandDescription[] {
  return [...trustCommands(kind), ...distributionCommands(kind), signingKeys(kind)];
}

/** The commands that packs, plugins and engines share. */
function trustCommands(kind: ExtensionKind): readonly CommandDescription[] {
  const name = wording[kind].example;
  return [signCommand(kind, name), verifyCommand(kind, name), inspectCommand(kind, name)];
}

/** The commands that keep packs, plugins and engines elsewhere. */
function distributionCommands(kind: ExtensionKind): readonly CommandDescription[] {
  const name = wording[kind].example;
  return [pushCommand(kind, name), pullCommand(kind, name)];
}

function extensionFolder(kind: ExtensionKind): Argument {
  return new Argument("[folder]", wording[kind].folder).default(".");
}

function signCommand(kind: ExtensionKind, name: string): LeafCommand {
  const end = kind === "pack" ? "as pack.yaml says" : "never";
  return {
    name: "sign",
    summary: `Sign every file of ${wording[kind].noun}, in addition to existing signatures of the same files`,
    arguments: [extensionFolder(kind)],
    options: [
      new Option("-k, --key <file>", "private key: unencrypted PEM of an Ed25519 or ECDSA P-256 key"),
      new Option("--bundle <file>", "add a signature from another tool: a Sigstore bundle of the statement").conflicts(
        "key",
      ),
      new Option("--statement", "print the statement to sign, byte for byte, and sign nothing").conflicts([
        "key",
        "bundle",
      ]),
      new Option(
        "--keyless",
        "sign by the identity of this build: an OIDC token of it, or SIGSTORE_ID_TOKEN",
      ).conflicts(["key", "bundle", "statement"]),
      ...keylessServices,
      new Option("--expires <time>", `expiry, such as 2027-01-01T00:00:00Z (default: ${end})`).argParser(parseTime),
      jsonOption,
    ],
    examples: `
# sign every file of it
gateway ${kind} sign ${name} --key signing-key.pem
# by the identity of a build, with services of your own
gateway ${kind} sign ${name} --keyless --fulcio https://fulcio.example --tsa https://tsa.example`,
    load: async () => (await import("../extension-sign.ts")).signExtension(kind),
  };
}

function verifyCommand(kind: ExtensionKind, name: string): LeafCommand {
  return {
    name: "verify",
    summary: `Verify ${wording[kind].noun} as a strict gateway would at its first load; exit 1 if it is refused`,
    arguments: [extensionFolder(kind)],
    options: [new Option("-t, --trust <file>", "trust policy").makeOptionMandatory(), jsonOption],
    examples: `
# check that a strict gateway would load it
gateway ${kind} verify ${name} --trust trust.yaml`,
    load: async () => (await import("../extension-verify.ts")).verifyFolder(kind),
  };
}

function inspectCommand(kind: ExtensionKind, name: string): LeafCommand {
  return {
    name: "inspect",
    summary: `Show the signatures of ${wording[kind].noun}, trusted or not; exit 1 if they do not match its files`,
    arguments: [extensionFolder(kind)],
    options: [jsonOption],
    examples: `
# the signers and the signed content
gateway ${kind} inspect ${name}`,
    load: async () => (await import("../extension-verify.ts")).inspectFolder(kind),
  };
}

function pushCommand(kind: ExtensionKind, name: string): LeafCommand {
  return {
    name: "push",
    summary: `Push ${wording[kind].noun}, signed, to an OCI registry`,
    arguments: [new Argument("<folder>", wording[kind].folder), target],
    options: [privateHostOption, jsonOption],
    examples: `
# a release under its own tag
gateway ${kind} push ${name} oci://registry.example/policy/${name}:1.0.0`,
    load: async () => (await import("../extension-distribute.ts")).pushExtension(kind),
  };
}

function pullCommand(kind: ExtensionKind, name: string): LeafCommand {
  return {
    name: "pull",
    summary: `Pull ${wording[kind].noun} from an OCI registry or an npm tarball: verified first, then written as a whole, and locked by digest`,
    arguments: [source, new Argument("<folder>", "new folder, or one that a pull has written")],
    options: [
      new Option("-t, --trust <file>", "trust policy").makeOptionMandatory(),
      new Option("--update", "accept another release than the locked one, but no older one"),
      privateHostOption,
      jsonOption,
    ],
    examples: `
# writes ${name}/ and ${name}.lock.json
gateway ${kind} pull oci://registry.example/policy/${name}:1.0.0 ${name} --trust trust.yaml
# a later release of it
gateway ${kind} pull oci://registry.example/policy/${name}:1.1.0 ${name} --trust trust.yaml --update
# a tarball of npm, by the address and integrity that \`npm view <package> dist\` prints
gateway ${kind} pull "https://npm.example/${name}/-/${name}-1.0.0.tgz#sha512-\${HASH}" ${name} --trust trust.yaml`,
    load: async () => (await import("../extension-distribute.ts")).pullExtension(kind),
  };
}

/** One key signs packs and plugins alike, and the policies of engines. */
function signingKeys(kind: ExtensionKind): CommandGroup {
  return {
    name: "keys",
    summary: "Create keys that sign packs and plugins",
    commands: [
      {
        name: "new",
        summary: "Create an Ed25519 key: write the private half to a new file, print the public half",
        arguments: [new Argument("<file>", "new file for the private key, readable by this user only")],
        options: [jsonOption],
        examples: `
# keep the file private; the printed half goes into trust.yaml
gateway ${kind} keys new signing-key.pem`,
        load: async () => (await import("../extension-sign.ts")).createSigningKey,
      },
    ],
  };
}
