import { writeFile } from "node:fs/promises";
import { expect } from "chai";
import { configDigest } from "../../../core/config/digest.ts";
import { loadConfig, readForm } from "../../../core/config/load.ts";
import { hideSecrets, writeShown } from "../../../core/config/shown-config.ts";
import { hashA, withFile } from "./fixture.ts";

const canary = "canary-5c1f";

function show(text: string, env: NodeJS.ProcessEnv = {}): Promise<string> {
  return withFile(text, async (path) => writeShown(hideSecrets((await readForm(path, env)).form)));
}

describe("writeShown(hideSecrets(form))", () => {
  it("means the same as the file, where nothing is hidden", async () => {
    const file = `
keys: [{id: me, tenant: acme, role: admin, key_hash: "${hashA}"}]
upstreams: [{name: files, transport: stdio, command: run, env_from: [WHO], capabilities: {"read_*": read},
  facts: {run: {shell: command, url: [a, /b/*/c]}, "q*": {sql: q, dialect: mysql}, f: {path: p, root: /srv}}}]
policy: {packs: [{path: mine, settings: {limit: 3, names: [a]}, shadow_rules: [mine.*]}]}
sessions: {risk: {kill_at: 70}}
`;
    const env = { WHO: canary };
    const shown = await show(file, env);
    const digests = await withFile(file, async (path) => {
      const digest = configDigest(await loadConfig(path, env));
      await writeFile(path, shown);
      return [digest, configDigest(await loadConfig(path, env))];
    });
    expect(digests[1]).to.equal(digests[0]);
    expect(shown).to.contain("WHO").and.not.contain(canary);
  });

  it("says of each value whether it is the default", async () => {
    const shown = await show("limits: {body_ms: 20000}\nlog: {level: info}\n");
    expect(shown).to.contain("  body_ms: 20000\n").and.contain("  headers_ms: 10000 # default\n");
    expect(shown).to.contain("log:\n  level: info # default\n");
  });

  it("tells of addresses the host, and of arguments, environments and headers the length", async () => {
    const shown = await show(`
upstreams:
  - {name: files, transport: stdio, command: run, args: ["--mode=${canary}"], env: {MODE: "${canary}"}}
  - {name: web, transport: http, url: "https://tools.example/${canary}?key=${canary}", headers: {x-mode: "${canary}"}}
  - {name: plain, transport: http, url: "https://tools.example/"}
`);
    expect(shown).not.to.contain(canary);
    expect(shown).to.contain("https://tools.example/[hidden]\n").and.contain("url: https://tools.example\n");
    expect(shown).to.contain(`MODE: "[hidden, ${canary.length} characters]"`);
  });
});
