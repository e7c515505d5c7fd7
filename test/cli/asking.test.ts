import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { examplesOf } from "../../core/cli/command/description.ts";
import { buildProgram } from "../../core/cli/program.ts";
import { makeSigner } from "../support/trust-world.ts";
import { type Finished, runGateway } from "../unit/cli/run.ts";
import { argumentsOf, everyLeaf } from "./command-tree.ts";

/** The files that examples name. */
const files: Readonly<Record<string, string>> = {
  "owner.pem": makeSigner().pem,
  "post-mortem.md": "The pager was silent; it has a battery now.",
  "actions.yaml": "actions: [{ tool: read_note, target: demo }]\n",
  "release.yaml": `task: release-notes
principal: agent
expected_tools: ["*"]
expected_resources: ["*"]
write_domains: ["*"]
max_actions: 1
expires_at: ${new Date(Date.now() + 3_600_000).toISOString()}
`,
};

const nowhere = "http://127.0.0.1:9";

/** Commands that ask a running gateway, each as its first example with a key calls it, or its first one. */
describe("every command that asks a gateway", () => {
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "asking-"));
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  });

  after(() => rm(folder, { recursive: true }));

  for (const { path, command } of everyLeaf(buildProgram())) {
    // That no gateway answers is a finding of `doctor`.
    if (path === "gateway doctor" || !command.options.some(({ long }) => long === "--admin")) continue;
    const lines = examplesOf(command).split("\n");
    const line = lines.find((each) => each.startsWith("GATEWAY_API_KEY=")) ?? lines[1] ?? "";

    it(`\`${path}\` ends with 3 where none answers, and with 1 before that where it has no key`, async () => {
      const words = argumentsOf(line).filter((word) => word !== "--json");
      const run = (key: string): Promise<Finished> =>
        runGateway([...words.map((word) => (word in files ? join(folder, word) : word)), "--json"], {
          GATEWAY_API_KEY: key,
          GATEWAY_ADMIN_URL: nowhere,
        });
      const [unreached, keyless] = await Promise.all([run("k"), run("")]);
      expect([unreached.code, unreached.stdout, codeOf(unreached)]).to.deep.equal([3, "", "GATEWAY_UNREACHABLE"]);
      expect([keyless.code, keyless.stdout, codeOf(keyless)]).to.deep.equal([1, "", "KEY_MISSING"]);
    });
  }
});

/** Of the one line that standard error is with `--json`. */
function codeOf({ stderr }: Finished): string {
  expect(stderr.split("\n")).to.have.lengthOf(2);
  return JSON.parse(stderr).error.code;
}
