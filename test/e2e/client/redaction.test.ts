import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { exitCodes } from "../../../core/evidence/record/reason.ts";
import type { ActionRecord } from "../../../core/evidence/record/record.ts";
import { formsOf } from "../../support/canary.ts";
import { CommandHost } from "../../support/command-host.ts";
import { filesWith } from "../../support/disk-search.ts";
import { clientKinds, type McpClient } from "../../support/mcp-client.ts";
import { PackFolders } from "../../support/policy-pack.ts";
import { PythonVerifier } from "../../support/python-verifier.ts";
import { answers, around, first, leaks, left, misfit, plain, second, secret, trial, uri } from "./leak.ts";
import { scriptedServer } from "./server-program.ts";
import { openWorld, type World } from "./world.ts";

describe("an answer that policy redacts", () => {
  const folders = new PackFolders();
  let world: World;
  let commands: CommandHost;

  before(async () => {
    commands = new CommandHost();
    const paths = await Promise.all([first, second, trial].map((files) => folders.write(files)));
    const [one, two, three] = paths.map((path) => `path: "${path}", phases: [output]`);
    world = await openWorld({
      servers: () => ({ leaky: scriptedServer(answers) }),
      policy: `plugins: [{ ${one} }, { ${two} }, { ${three}, mode: shadow }]`,
    });
  });

  after(async () => {
    await commands.stop();
    await world?.stop();
    await folders.remove();
  });

  function callsOf(tool: string): number {
    return world.calls("leaky").filter(({ params }) => params?.name === tool).length;
  }

  async function outcomeOf(tool: string): Promise<ActionRecord> {
    const records = await world.evidence.recordsOf(() => true);
    const found = records.findLast(({ action, kind }) => action.tool === tool && kind === "outcome");
    if (found === undefined) throw new Error(`expected an outcome of ${tool}`);
    return found;
  }

  /** Has the command write a session's evidence; returns the file. */
  async function save(what: "export" | "report", session: string): Promise<string> {
    const file = join(world.folder, `${session}.${what}`);
    const args = ["evidence", what, session, "--file", file, "--admin", world.gateway.adminUrl];
    expect(await commands.run(args, { GATEWAY_API_KEY: world.key })).to.include({ code: 0 });
    return file;
  }

  async function expectHidden(answer: Promise<unknown>): Promise<unknown> {
    const came = await answer.catch((error: Error & { data?: unknown }) => ({
      message: error.message,
      data: error.data,
    }));
    expect(JSON.stringify(came)).to.include("[mark]").and.not.include(secret);
    return came;
  }

  for (const kind of clientKinds) {
    describe(`to a client that is ${kind}`, () => {
      let client: McpClient;

      before(async () => {
        client = await world.connect(kind);
      });

      for (const { name, shown } of leaks) {
        it(`[S59] reaches it without what was redacted: ${name}`, async () => {
          const calls = callsOf(name);
          expect(await expectHidden(client.callTool(name))).to.deep.include(shown);
          expect(callsOf(name)).to.equal(calls + 1);
        });
      }

      it("[S59] reaches it without what was redacted: an error's message and data", async () => {
        const came = (await expectHidden(client.callTool("leak_refusal"))) as { message: string; data: object };
        expect(came.message).to.include(left);
        expect(came.data).to.deep.equal({ detail: left });
      });

      it("[S59] reaches it without what was redacted: a resource and a prompt", async () => {
        expect(await expectHidden(client.readResource(uri))).to.deep.include({ contents: [{ uri, text: left }] });
        const messages = [{ role: "user", content: { type: "text", text: left } }];
        expect(await expectHidden(client.getPrompt("leaky"))).to.deep.include({ messages });
      });

      it("has one replacement where two policies overlap, that of the first", async () => {
        const { content } = await client.callTool("leak_overlap");
        expect(content).to.deep.equal([{ type: "text", text: around("[first]") }]);
      });

      it("is as it came where the policy is on trial", async () => {
        const { content } = await client.callTool("leak_trial");
        expect(content).to.deep.equal([{ type: "text", text: around(plain) }]);
      });

      it("is withheld where a redaction does not fit it", async () => {
        const calls = callsOf("leak_bad");
        const result = await client.callTool("leak_bad");
        expect(result.isError).to.equal(true);
        expect(JSON.stringify(result)).to.include("policy withheld its answer").and.not.include(misfit);
        expect(callsOf("leak_bad")).to.equal(calls + 1);
      });
    });
  }

  describe("on record", () => {
    it("says which rule redacted in how many places", async () => {
      const policies = (await outcomeOf("leak_structure")).evaluation?.policies ?? [];
      const told = policies.map(({ name, redactions }) => [name, redactions]).filter(([, each]) => each !== undefined);
      expect(told).to.deep.equal([["first", [{ count: 2, rule: "first.mark" }]]]);
    });

    it("names each of the rules that overlap", async () => {
      const policies = (await outcomeOf("leak_overlap")).evaluation?.policies ?? [];
      expect(policies.flatMap(({ redactions }) => redactions ?? []).map(({ rule }) => rule)).to.deep.equal([
        "first.start",
        "second.rest",
      ]);
    });

    it("tells what a policy on trial would have redacted", async () => {
      const { evaluation } = await outcomeOf("leak_trial");
      expect(evaluation?.shadow.map(({ redactions }) => redactions)).to.deep.equal([
        [{ count: 1, rule: "trial.mark" }],
      ]);
      expect(evaluation?.policies.every(({ redactions }) => redactions === undefined)).to.equal(true);
    });

    it("tells of a redaction that does not fit as of any policy that cannot answer", async () => {
      const { evaluation } = await outcomeOf("leak_bad");
      expect(evaluation).to.deep.include({ decision: "block", rules: ["policy_error"], errors: ["first"] });
    });

    it("is counted", async () => {
      const metrics = await (await fetch(`${world.gateway.metricsUrl}/metrics`)).text();
      const places = leaks.reduce((sum, each) => sum + each.places.length, 0) + 2 + 1 + 1 + 1;
      expect(metrics).to.include(`gateway_redactions_total{protocol="mcp"} ${places * clientKinds.length}\n`);
    });

    it("[S59] is in every export as the client got it, and both verifiers find it sound", async () => {
      const python = await PythonVerifier.start();
      let shown = "";
      try {
        for (const { id } of await world.evidence.sessions()) {
          const bundle = await save("export", id);
          expect((await commands.run(["evidence", "verify", bundle])).code).to.equal(exitCodes["self-attested"]);
          const said = await python.judge({ bundle: await readFile(bundle), keys: [] });
          expect(said).to.include({ verdict: "self-attested", first_bad: null });
          shown += (await readFile(bundle, "utf8")) + (await readFile(await save("report", id), "utf8"));
        }
      } finally {
        await python.stop();
      }
      expect(shown).to.include(left).and.include(plain).and.include("redacted by first.mark \\(2\\)");
      for (const hidden of [secret, misfit]) {
        for (const form of formsOf(hidden)) expect(shown.includes(form), form).to.equal(false);
      }
    });

    it("[S59] leaves nothing of it in a log or on the disk", async () => {
      const { gateway } = world;
      for (const form of [...formsOf(secret), ...formsOf(misfit)]) {
        expect((gateway.stdout() + gateway.stderr()).includes(form)).to.equal(false);
        expect(await filesWith(join(gateway.folder, "data"), form)).to.deep.equal([]);
      }
    });
  });
});
