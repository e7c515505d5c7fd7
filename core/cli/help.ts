import type { Command } from "commander";

const style = { styleTitle: bold, styleSubcommandTerm: bold, styleOptionTerm: bold };

/** Lets the help of a command and of all below it end with examples, and stand out on a terminal. Returns the command. */
export function completeHelp(command: Command, parents: readonly string[] = []): Command {
  const path = [...parents, command.name()];
  const examples = examplesOf(command, path.join(" "));
  command.configureHelp(style);
  if (examples !== "") command.addHelpText("after", () => `\n${bold("Examples:")}\n${examples.replace(/^/gm, "  ")}`);
  for (const child of command.commands) completeHelp(child, path);
  return command;
}

/** Commander takes it out again where the stream is no terminal, and where NO_COLOR is set. */
function bold(text: string): string {
  return `\u001b[1m${text}\u001b[22m`;
}

/** Of the commands of `Author policy:`. */
const authorExamples: Readonly<Record<string, string>> = {
  "gateway pack new": `
# a pack with one rule, to begin with
gateway pack new acme-rules`,
  "gateway pack lint": `
# what is wrong with it, again after each change
gateway pack lint acme-rules --watch`,
  "gateway pack test": `
# run the pack's own tests
gateway pack test acme-rules`,
  "gateway pack sign": `
# vouch for every file of it
gateway pack sign acme-rules --key signing-key.pem`,
  "gateway pack verify": `
# would a strict gateway load it?
gateway pack verify acme-rules --trust trust.yaml`,
  "gateway pack inspect": `
# who signed it, and what
gateway pack inspect acme-rules`,
  "gateway pack keys new": `
# the private half goes into the file, the public half into trust.yaml
gateway pack keys new signing-key.pem`,
  "gateway plugin new": `
# a plugin in AssemblyScript with one rule, to begin with
gateway plugin new acme-scan`,
  "gateway plugin build": `
# compile it, and again after each change
gateway plugin build acme-scan --watch`,
  "gateway plugin test": `
# run the plugin's own tests, in its sandbox
gateway plugin test acme-scan`,
  "gateway plugin bench": `
# how long a call takes, beside its budget
gateway plugin bench acme-scan`,
  "gateway plugin sign": `
# vouch for every file of it
gateway plugin sign acme-scan --key signing-key.pem`,
  "gateway plugin verify": `
# would a strict gateway load it?
gateway plugin verify acme-scan --trust trust.yaml`,
  "gateway plugin inspect": `
# who signed it, and what
gateway plugin inspect acme-scan`,
  "gateway plugin keys new": `
# the private half goes into the file, the public half into trust.yaml
gateway plugin keys new signing-key.pem`,
  "gateway plugin list": `
# the plugins in force, and who signed each
gateway plugin list`,
  "gateway test-action": `
# what would be said of this call?
gateway test-action --tool write_note --target demo --capability write --arguments '{"title":"plan"}'
# and why, part by part?
gateway test-action --tool write_note --target demo --capability write --explain
# as a check in a build: exit 1 unless it is blocked
gateway test-action --tool delete_note --target demo --capability delete --expect block`,
  "gateway simulate": `
# a file of actions, each with what is expected
gateway simulate actions.yaml`,
  "gateway policies list": `
# what is in force
gateway policies list
# only what nobody signed
gateway policies list --json | jq 'select(.signer == null)'`,
  "gateway policies would-have": `
# what shadow mode would have held or blocked
gateway policies would-have`,
};

/** Of the commands of `Operate:`. */
const operateExamples: Readonly<Record<string, string>> = {
  "gateway usage": `
# what was used in November, by model
gateway usage --from 2026-11-01 --to 2026-11-30 --by model
# for a bill
gateway usage --by principal --json`,
  "gateway upstreams list": `
# which MCP servers answer
gateway upstreams list`,
  "gateway providers list": `
# which providers of models answer
gateway providers list`,
  "gateway webhooks dead-letters": `
# what nobody could be told
gateway webhooks dead-letters`,
  "gateway webhooks redeliver": `
# once the receiver is back
gateway webhooks redeliver msg_01890a5d-ac96-774b-bcce-b302099a8057`,
  "gateway backup create": `
# while the gateway serves
gateway backup create`,
  "gateway backup list": `
# the backups there are
gateway backup list`,
  "gateway backup verify": `
# is it whole?
gateway backup verify /srv/backups/gateway/backup.jsonl`,
  "gateway restore": `
# into a folder that holds the keys, and no state
gateway restore /srv/backups/gateway/backup.jsonl --data /var/lib/gateway
# in place of the state that is there
gateway restore /srv/backups/gateway/backup.jsonl --data /var/lib/gateway --replace`,
};

const session = "session-v1-4f2a9c";
const publicKey = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

/** Of the commands of `Prove:`. */
const proveExamples: Readonly<Record<string, string>> = {
  "gateway evidence export": `
# a session's evidence, to verify anywhere
gateway evidence export ${session} --file session.tar
# the same without one argument
gateway evidence export ${session} --file session.tar --redact 12.arguments.password`,
  "gateway evidence report": `
# the same for a person to read
gateway evidence report ${session} --file session.html --format html`,
  "gateway evidence verify": `
# a file that was exported, by the key its operator published
gateway evidence verify session.tar --key ${publicKey}
# all that a stopped gateway keeps, against a witness
gateway evidence verify --data /var/lib/gateway --witness /mnt/vault/evidence`,
  "gateway evidence keys list": `
# what to give to those who verify
gateway evidence keys list`,
  "gateway evidence keys rotate": `
# sign with a new key from now on
gateway evidence keys rotate`,
  "gateway evidence prune": `
# drop what is older, with proof of what it was
gateway evidence prune --data /var/lib/gateway --tenant acme --before 2026-01-31T00:00:00Z --reason "retention of a year"`,
  "gateway evidence erase": `
# a person's data, in every record of a session
gateway evidence erase --data /var/lib/gateway --tenant acme --session ${session} --field arguments.email --reason "request 42"`,
};

const approval = "apr_0123456789abcdef0123456789abcdef";
const decision = "019b7600-0000-7000-8000-000000000000";

const principal = "principal-v1-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/** Of the commands of `Review:`. */
const reviewExamples: Readonly<Record<string, string>> = {
  "gateway approvals list": `
# what waits for a person
gateway approvals list`,
  "gateway approvals history": `
# what was answered with no, as JSON
gateway approvals history --state denied --json`,
  "gateway approvals show": `
# all that a reviewer should know
gateway approvals show ${approval}`,
  "gateway approvals approve": `
# just this call, once
gateway approvals approve ${approval} --comment "as planned"
# this tool in this task once, whatever its arguments
gateway approvals approve ${approval} --scope task`,
  "gateway approvals deny": `
# no, for good
gateway approvals deny ${approval} --comment "wrong database"`,
  "gateway approvals watch": `
# print each as it begins to wait
gateway approvals watch`,
  "gateway explain": `
# why was this call refused?
gateway explain ${decision}
# what its rules asked, and of which values, as JSON
gateway explain ${decision} --json`,
  "gateway break-glass list": `
# which post-mortems are owed
gateway break-glass list`,
  "gateway break-glass close": `
# hand in what was found out
gateway break-glass close ${approval} --file post-mortem.md`,
  "gateway sessions list": `
# the riskiest first
gateway sessions list --limit 10`,
  "gateway sessions show": `
# its risk, taints and last actions
gateway sessions show ${session}`,
  "gateway sessions reset": `
# trust it again, from nothing
gateway sessions reset ${session} --reason "false alarm"`,
  "gateway sessions kill": `
# stop one session
gateway sessions kill ${session} --note "reads secrets"
# stop everything that an agent asks for
gateway sessions kill --principal ${principal}`,
  "gateway sessions release": `
# let it go on
gateway sessions release ${session} --reason "looked into"`,
  "gateway sessions killed": `
# what is stopped now
gateway sessions killed`,
  "gateway tickets issue": `
# three writes within ten minutes
gateway tickets issue --principal ${principal} --tool write_note --target demo --capability write --max-uses 3 --ttl 600`,
  "gateway tickets list": `
# what is permitted ahead of time
gateway tickets list`,
  "gateway tickets revoke": `
# let it permit nothing any more
gateway tickets revoke tkt_0123456789abcdef0123456789abcdef --reason "plan changed"`,
  "gateway tickets keys": `
# what others verify your tickets with
gateway tickets keys`,
  "gateway tickets verify": `
# what does this token say?
gateway tickets verify --key 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo= < token.txt`,
  "gateway manifests declare": `
# what the agent is expected to do
gateway manifests declare --file release.yaml`,
  "gateway manifests list": `
# the tasks there are
gateway manifests list`,
  "gateway manifests show": `
# what is planned, and how much of it was used
gateway manifests show release-notes`,
  "gateway manifests withdraw": `
# the task is done: nothing is let through for it any more
gateway manifests withdraw release-notes`,
  "gateway manifests sign-reference": `
# what an agent sends as X-Gateway-Task, for an hour
gateway manifests sign-reference release-notes --key owner.pem`,
};

/** Of the commands of `Start:`, and of the program itself. */
const startExamples: Readonly<Record<string, string>> = {
  gateway: `
# on this machine: a demo server, the shipped policy packs, two keys
gateway serve
# see what waits for a person
GATEWAY_API_KEY=$(cat data/operator.key) gateway approvals list`,
  "gateway init": `
# in a new folder, before a demo server
gateway init gateway
# before a server of yours
gateway init gateway --tenant acme --upstream https://tools.example.com/mcp
gateway init gateway --tenant acme --upstream "npx -y @modelcontextprotocol/server-filesystem /srv/projects"`,
  "gateway doctor": `
# before the first start, and whenever something is odd
gateway doctor --config gateway.yaml
# what a gateway that runs says of itself, too
GATEWAY_API_KEY=$(cat admin.key) gateway doctor --config gateway.yaml --json`,
  "gateway serve": `
# on this machine: a demo server, the shipped policy packs, two keys
gateway serve
# as it runs in production
gateway serve --config /etc/gateway/gateway.yaml`,
  "gateway keys new": `
# for an agent: it may call, and review nothing
gateway keys new --id agent --tenant acme
# for who reviews what agents ask for
gateway keys new --id reviewer --tenant acme --role operator`,
  "gateway config check": `
# every fault of a file, with its line
gateway config check gateway.yaml`,
  "gateway config show": `
# what a file comes to, to be shown to who helps
gateway config show gateway.yaml`,
  "gateway config schema": `
# for an editor that completes and checks YAML
gateway config schema > gateway.schema.json`,
  "gateway config reference": `
# everything that can be set
gateway config reference | less`,
  "gateway completion": `
# in this shell, for now
source <(gateway completion bash)
# from the next start of each shell
gateway completion bash > ~/.local/share/bash-completion/completions/gateway
gateway completion zsh > ~/.zfunc/_gateway
gateway completion fish > ~/.config/fish/completions/gateway.fish`,
};

/**
 * By the words of a command: lines that a shell runs, each below a `#` that says what for, the one to begin with first.
 * A command that only holds others has none of its own.
 */
const examples: Readonly<Record<string, string>> = {
  ...startExamples,
  ...authorExamples,
  ...reviewExamples,
  ...proveExamples,
  ...operateExamples,
};

/** The examples of a command: its own, or else the first of each command below it. Empty where there are none. */
export function examplesOf(command: Command, path: string): string {
  const own = examples[path]?.trim();
  if (own !== undefined) return own;
  const below = command.commands.map((child) => examplesOf(child, `${path} ${child.name()}`));
  return below.map((text) => text.split("\n").slice(0, 2).join("\n")).join("\n");
}
