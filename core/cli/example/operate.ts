/** Of the commands of `Operate:`. */
export const operateExamples: Readonly<Record<string, string>> = {
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
