const session = "session-v1-4f2a9c";
const publicKey = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

/** Of the commands of `Prove:`. */
export const proveExamples: Readonly<Record<string, string>> = {
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
