import { Argument, Option } from "commander";
import { approvalScopes } from "../../action/approval.ts";
import type { SessionSort } from "../../session/session-directory.ts";
import { adminCommand } from "./admin-command.ts";
import {
  adminOption,
  jsonOption,
  parseApprovalId,
  parseCount,
  parseLifetime,
  parsePrincipal,
  parsePublicKey,
  parseSession,
  parseTask,
  parseTicketId,
} from "./argument.ts";
import type { CommandDescription } from "./description.ts";

// Loaded with the command that calls one of them.
const approvalOperations = async () => (await import("../../approval/operation.ts")).approvalOperations;
const explainOperations = async () => (await import("../../explain/operation.ts")).explainOperations;
const killOperations = async () => (await import("../../kill/operation.ts")).killOperations;
const manifestOperations = async () => (await import("../../manifest/operation.ts")).manifestOperations;
const sessionOperations = async () => (await import("../../session/operation.ts")).sessionOperations;
const ticketOperations = async () => (await import("../../ticket/operation.ts")).ticketOperations;

const approval = "apr_0123456789abcdef0123456789abcdef";
const decision = "019b7600-0000-7000-8000-000000000000";
const session = "session-v1-4f2a9c";
const principal = "principal-v1-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

const approvalId = new Argument("<id>", "id of the approval, from `gateway approvals list`").argParser(parseApprovalId);
const breakGlassId = new Argument("<id>", "id of the approval, from `gateway break-glass list`").argParser(
  parseApprovalId,
);
const aboutSession = "label of the session, its id, or the beginning of that";
const sessionName = new Argument("<session>", aboutSession).argParser(parseSession);
const ticketId = new Argument("<ticket-id>", "id of the ticket, from `gateway tickets list`").argParser(parseTicketId);
const task = new Argument("<task>", "name of the task, from `gateway manifests list`").argParser(parseTask);

const comment = new Option("--comment <text>", "comment, recorded with the review");
const limit = new Option("--limit <count>", "list at most so many").argParser(parseCount).default(50);

const sorts: readonly SessionSort[] = ["risk", "last"];

const approvalHints = {
  404: "`gateway approvals list` lists the pending ones",
  409: "`gateway approvals show {id}` shows its state",
};

/** Options that name what the kill switch acts on, in place of one session. */
const killTargets: readonly Option[] = [
  new Option("--principal <id>", "every action of this principal, instead of one session").argParser(parsePrincipal),
  new Option("--tenant", "every action of your tenant"),
  new Option("--gateway", "every action of every tenant; for admins of `sessions.gateway_tenant`"),
];

/** Commands for those who review actions and stop sessions. */
export const reviewCommands: readonly CommandDescription[] = [
  {
    name: "approvals",
    summary: "Review pending approvals",
    commands: [
      adminCommand({
        name: "list",
        summary: "List approvals that are pending or ready to use",
        operation: async () => (await approvalOperations()).listApprovals,
        options: [new Option("--state <state>", "only this state").choices(["pending", "approved"]), limit],
        examples: `
# pending and approved requests
gateway approvals list`,
        view: async () => (await import("../view/approval.ts")).approvalList,
      }),
      adminCommand({
        name: "history",
        summary: "List past approvals, newest first",
        operation: async () => (await approvalOperations()).listPastApprovals,
        options: [new Option("--state <state>", "only this state").choices(["denied", "expired", "consumed"]), limit],
        examples: `
# denied requests, as JSON
gateway approvals history --state denied --json`,
        view: async () => (await import("../view/approval.ts")).pastApprovalList,
      }),
      adminCommand({
        name: "show",
        summary: "Show everything needed to review a request",
        operation: async () => (await approvalOperations()).getApproval,
        arguments: [approvalId],
        hints: approvalHints,
        examples: `
# the whole action, its session and the rules that held it
gateway approvals show ${approval}`,
        view: async () => (await import("../view/approval.ts")).approvalDetail,
      }),
      adminCommand({
        name: "approve",
        summary: "Approve a pending request",
        operation: async () => (await approvalOperations()).approve,
        arguments: [approvalId],
        options: [
          comment,
          new Option("--scope <scope>", "`exact`: this call; `task`: this tool in this task, with any arguments")
            .choices(approvalScopes)
            .default("exact"),
          new Option("--break-glass <reason>", "approve alone as an admin; requires a post-mortem afterwards"),
        ],
        hints: approvalHints,
        examples: `
# exactly this call, once
gateway approvals approve ${approval} --comment "as planned"
# this tool in this task once, with any arguments
gateway approvals approve ${approval} --scope task`,
        view: async () => (await import("../view/approval.ts")).approvedRequest,
      }),
      adminCommand({
        name: "deny",
        summary: "Deny a pending request",
        operation: async () => (await approvalOperations()).deny,
        arguments: [approvalId],
        options: [comment],
        hints: approvalHints,
        examples: `
# for good
gateway approvals deny ${approval} --comment "wrong database"`,
        view: async () => (await import("../view/approval.ts")).deniedRequest,
      }),
      {
        name: "watch",
        summary: "Print each request as it becomes pending, until interrupted",
        options: [adminOption, new Option("--json", "print JSON, one line for each request")],
        examples: `
# print each pending request once
gateway approvals watch`,
        load: async () => (await import("../approval-watch.ts")).watchPending,
      },
    ],
  },
  adminCommand({
    name: "explain",
    summary: "Show which rules decided, and which nearly did",
    operation: async () => (await explainOperations()).explainDecision,
    arguments: [new Argument("<id>", "id of the decision, from a refusal, or of its action")],
    examples: `
# the reasons for a refusal
gateway explain ${decision}
# every condition with its values, as JSON
gateway explain ${decision} --json`,
    view: async () => (await import("../view/explanation.ts")).decisionExplanation,
  }),
  {
    name: "break-glass",
    summary: "Account for break-glass approvals",
    commands: [
      adminCommand({
        name: "list",
        summary: "List break-glass uses without a post-mortem",
        operation: async () => (await approvalOperations()).listBreakGlass,
        examples: `
# missing post-mortems
gateway break-glass list`,
        view: async () => (await import("../view/approval.ts")).breakGlassList,
      }),
      {
        name: "close",
        summary: "Record the post-mortem of a break-glass use",
        arguments: [breakGlassId],
        options: [
          new Option("--post-mortem <text>", "20 to 20,000 characters").conflicts("file"),
          new Option("--file <path>", "the post-mortem, from a file"),
          adminOption,
          jsonOption,
        ],
        examples: `
# the findings, from a file
gateway break-glass close ${approval} --file post-mortem.md`,
        load: async () => (await import("../break-glass.ts")).closeBreakGlass,
      },
    ],
  },
  {
    name: "sessions",
    summary: "Inspect, stop and release agent sessions",
    commands: [
      {
        name: "kill",
        summary: "Stop a session, a principal, a tenant or the whole gateway, until released",
        arguments: [new Argument("[session]", aboutSession).argParser(parseSession)],
        options: [...killTargets, new Option("--note <text>", "reason; recorded"), adminOption, jsonOption],
        examples: `
# stop one session, by the beginning of its id or by its label
gateway sessions kill ${session} --note "reads secrets"
gateway sessions kill nightly-build
# stop everything of one principal
gateway sessions kill --principal ${principal}`,
        load: async () => (await import("../kill-switch.ts")).kill,
      },
      {
        name: "release",
        summary: "Release a stopped session",
        arguments: [new Argument("[session]", aboutSession).argParser(parseSession)],
        options: [
          ...killTargets,
          new Option("--reason <text>", "reason for the release; recorded").makeOptionMandatory(),
          adminOption,
          jsonOption,
        ],
        examples: `
# after an investigation
gateway sessions release ${session} --reason "looked into"`,
        load: async () => (await import("../kill-switch.ts")).release,
      },
      adminCommand({
        name: "killed",
        summary: "List everything in your tenant that the kill switch stopped",
        operation: async () => (await killOperations()).listKills,
        examples: `
# stopped now
gateway sessions killed`,
        view: async () => (await import("../view/session.ts")).killList,
      }),
      adminCommand({
        name: "list",
        summary: "List the sessions of your tenant with their state and risk",
        operation: async () => (await sessionOperations()).listSessions,
        options: [
          new Option("--sort <by>", "highest risk or latest action first").choices(sorts).default("risk"),
          limit,
        ],
        examples: `
# the ten riskiest
gateway sessions list --limit 10`,
        view: async () => (await import("../view/session.ts")).sessionList,
      }),
      adminCommand({
        name: "show",
        summary: "Show the taints and recent actions of a session",
        operation: async () => (await sessionOperations()).getSession,
        arguments: [sessionName],
        examples: `
# its risk, taints and recent actions
gateway sessions show ${session}`,
        view: async () => (await import("../view/session.ts")).sessionDetail,
      }),
      adminCommand({
        name: "reset",
        summary: "Reset the risk and taints of a session; a damaged one starts anew",
        operation: async () => (await sessionOperations()).resetSession,
        arguments: [sessionName],
        options: [new Option("--reason <text>", "reason for the reset; recorded").makeOptionMandatory()],
        examples: `
# after a false alarm
gateway sessions reset ${session} --reason "false alarm"`,
        view: async () => (await import("../view/session.ts")).resetSession,
      }),
    ],
  },
  {
    name: "tickets",
    summary: "Issue and revoke capability tickets",
    commands: [
      adminCommand({
        name: "issue",
        summary: "Issue a ticket and print its token, which is shown once",
        operation: async () => (await ticketOperations()).issueTicket,
        options: [
          new Option("--principal <id>", "principal that may use it: `principal-v1-…`").makeOptionMandatory(),
          new Option("--tool <names...>", "tools, or globs of them").makeOptionMandatory(),
          new Option("--target <names...>", "upstreams, or globs of them").makeOptionMandatory(),
          new Option("--capability <words...>", "capabilities, like `write`").makeOptionMandatory(),
          new Option("--max-uses <count>", "actions it permits (default: 1)").argParser(parseCount),
          new Option("--ttl <seconds>", "time until it expires (default: as configured)").argParser(parseCount),
        ],
        parameters: { tool: "tools", target: "targets", capability: "capabilities", ttl: "ttl_seconds" },
        examples: `
# three writes within ten minutes
gateway tickets issue --principal ${principal} --tool write_note --target demo --capability write --max-uses 3 --ttl 600`,
        view: async () => (await import("../view/ticket.ts")).issuedTicket,
      }),
      adminCommand({
        name: "list",
        summary: "List the tickets of your tenant",
        operation: async () => (await ticketOperations()).listTickets,
        examples: `
# every ticket, its state and its uses
gateway tickets list`,
        view: async () => (await import("../view/ticket.ts")).ticketList,
      }),
      adminCommand({
        name: "revoke",
        summary: "Revoke a ticket",
        operation: async () => (await ticketOperations()).revokeTicket,
        arguments: [ticketId],
        options: [new Option("--reason <text>", "reason; recorded").makeOptionMandatory()],
        examples: `
# it permits nothing from now on
gateway tickets revoke tkt_0123456789abcdef0123456789abcdef --reason "plan changed"`,
        view: async () => (await import("../view/ticket.ts")).revokedTicket,
      }),
      adminCommand({
        name: "keys",
        summary: "List the public keys that sign your tenant's tickets",
        operation: async () => (await ticketOperations()).listTicketKeys,
        examples: `
# for those who verify your tickets
gateway tickets keys`,
        view: async () => (await import("../view/ticket.ts")).ticketKeyList,
      }),
      {
        name: "verify",
        summary: "Verify the token on standard input offline, and print its claims",
        options: [
          new Option("--key <base64>", "public key, from `gateway tickets keys`")
            .argParser(parsePublicKey)
            .makeOptionMandatory(),
          new Option("--json", "print JSON, the only format"),
        ],
        examples: `
# the claims of a token
gateway tickets verify --key 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo= < token.txt`,
        load: async () => (await import("../ticket-verify.ts")).verifyTicket,
      },
    ],
  },
  {
    name: "manifests",
    summary: "Declare the expected actions of agent tasks",
    commands: [
      {
        name: "declare",
        summary: "Declare a manifest, replacing the current one of its task",
        options: [
          new Option("-f, --file <file>", "the manifest, YAML or JSON").makeOptionMandatory(),
          adminOption,
          jsonOption,
        ],
        examples: `
# the expected actions of a task
gateway manifests declare --file release.yaml`,
        load: async () => (await import("../manifest.ts")).declareManifest,
      },
      adminCommand({
        name: "list",
        summary: "List the manifests in force",
        operation: async () => (await manifestOperations()).listManifests,
        examples: `
# every declared task
gateway manifests list`,
        view: async () => (await import("../view/manifest.ts")).manifestList,
      }),
      adminCommand({
        name: "show",
        summary: "Show a manifest",
        operation: async () => (await manifestOperations()).getManifest,
        arguments: [task],
        examples: `
# the expected actions of one task
gateway manifests show release-notes`,
        view: async () => (await import("../view/manifest.ts")).manifestDetail,
      }),
      adminCommand({
        name: "withdraw",
        summary: "Withdraw a manifest",
        operation: async () => (await manifestOperations()).withdrawManifest,
        arguments: [task],
        examples: `
# when the task is done
gateway manifests withdraw release-notes`,
        view: async () => (await import("../view/manifest.ts")).withdrawnManifest,
      }),
      {
        name: "sign-reference",
        summary: "Sign the reference that binds an agent's session to a task",
        arguments: [task],
        options: [
          new Option(
            "-k, --key <file>",
            "unencrypted PEM of an Ed25519 private key, one of `sessions.task_signers`",
          ).makeOptionMandatory(),
          new Option("--expires-in <seconds>", "time in which it can be sent, at most 31 days")
            .argParser(parseLifetime)
            .default(3_600),
          adminOption,
          new Option("--json", "print JSON, with the claims"),
        ],
        examples: `
# the value of the agent's X-Gateway-Task header, for an hour
gateway manifests sign-reference release-notes --key owner.pem`,
        load: async () => (await import("../manifest.ts")).signTaskReference,
      },
    ],
  },
];
