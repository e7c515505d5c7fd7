const approval = "apr_0123456789abcdef0123456789abcdef";
const decision = "019b7600-0000-7000-8000-000000000000";
const session = "session-v1-4f2a9c";
const principal = "principal-v1-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/** Of the commands of `Review:`. */
export const reviewExamples: Readonly<Record<string, string>> = {
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
