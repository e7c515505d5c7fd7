/** Of the commands of `Start:`, and of the program itself. */
export const startExamples: Readonly<Record<string, string>> = {
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
