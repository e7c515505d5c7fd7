/** Of the commands of `Author policy:`. */
export const authorExamples: Readonly<Record<string, string>> = {
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
