import { cp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import type { JsonObject } from "../../../core/action/json.ts";
import { Agent, type Answer } from "../../support/agent.ts";
import { runCommand } from "../../support/command-host.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { textOf, toldOf } from "../../support/held-site.ts";
import { PythonVerifier } from "../../support/python-verifier.ts";
import { type Recorder, startRecorder } from "../../support/recorder.ts";
import {
  eras,
  isSince,
  type KnownState,
  type Person,
  readKnownState,
  stoppedPerson,
  storedKey,
  storedPrincipal,
  storedSecret,
  unpackStoredState,
} from "../../support/stored-state.ts";
import { until, WebhookReceiver } from "../../support/webhook-receiver.ts";
import { type Finished, runGateway } from "../../unit/cli/run.ts";

const shiftedClock = fileURLToPath(new URL("../../fixture/shifted-clock.js", import.meta.url));
/** How long after its stop a state is taken up again: well within what approvals and tickets are given. */
const pauseMs = 30_000;

describe("the state that a gateway of an earlier day left", () => {
  let python: PythonVerifier;
  let upstream: Recorder;
  let hook: WebhookReceiver;
  let folder: string;
  let known: KnownState;
  let gateway: RunningGateway;

  before(async () => {
    python = await PythonVerifier.start();
  });
  after(() => python.stop());

  /** A clock that stands where it stood then. */
  function env(): Record<string, string> {
    return { NODE_OPTIONS: `--import=${shiftedClock}`, CLOCK_OFFSET: join(folder, "offset"), HOOK: storedSecret };
  }

  async function start(data = "data"): Promise<RunningGateway> {
    const text = await readFile(join(folder, "gateway.yaml"), "utf8");
    const own = text
      .replace(/^(data_dir|resilience):.*\n/gm, "")
      .replace(/http:\/\/127\.0\.0\.1:\d+\/mcp/, upstream.url)
      .replace(/http:\/\/127\.0\.0\.1:\d+\/hook/, hook.url);
    const config = `${own}data_dir: ${data}\nresilience: { enabled: true, backup_dir: kept }\n`;
    return startGateway({ config, folder, env: env() });
  }

  function cli(...args: readonly string[]): Promise<Finished> {
    return runCommand(args, { GATEWAY_API_KEY: storedKey("adam"), GATEWAY_ADMIN_URL: gateway.adminUrl });
  }

  async function call(args: JsonObject, label: string, token?: string, person: Person = "agent"): Promise<Answer> {
    const agent = new Agent(gateway.url, storedKey(person), label, token);
    return agent.call("echo", args).finally(() => agent.hangUp());
  }

  async function ask<T>(path: string, method = "GET"): Promise<T> {
    const response = await fetch(`${gateway.adminUrl}/admin/v1/${path}`, {
      method,
      headers: { "x-api-key": storedKey("rita") },
    });
    expect(response.status, path).to.equal(200);
    return (await response.json()) as T;
  }

  async function list(path: string): Promise<readonly JsonObject[]> {
    return (await ask<{ items: JsonObject[] }>(path)).items;
  }

  function approval(state: string): string {
    return known.approvals.find((each) => each.state === state)?.id ?? "";
  }

  /** Which policies judged the first action of a session, and the last. */
  async function policiesOf(label: string): Promise<unknown[]> {
    const reader = new EvidenceReader(gateway.adminUrl, storedKey("rita"));
    const records = (await reader.recordsOf((each) => each === label)).filter(({ kind }) => kind === "decision");
    return [records.at(0), records.at(-1)].map((record) =>
      record?.evaluation?.policies.map(({ kind, name, digest }) => [kind, name, digest]),
    );
  }

  async function stateOf(id: string): Promise<string> {
    return (await ask<{ approval: { state: string } }>(`approvals/${id}`)).approval.state;
  }

  async function killed(): Promise<readonly unknown[]> {
    return (await list("kills")).filter(({ scope }) => scope === "session").map(({ subject }) => subject);
  }

  for (const era of eras) {
    describe(`when it was the first to be ${era}`, () => {
      before(async () => {
        folder = await unpackStoredState(era);
        known = await readKnownState(folder);
        await writeFile(join(folder, "offset"), String(Date.parse(known.stopped_at) + pauseMs - Date.now()));
        [upstream, hook] = await Promise.all([startRecorder(), WebhookReceiver.start()]);
        gateway = await start();
        const isMoved = /"entries":[1-9].*"store_format_moved"/.test(gateway.stderr());
        expect(isMoved, "the way to today's store format").to.equal(!isSince(era, "journaled"));
      });

      after(async () => {
        await gateway.stop();
        await upstream.stop();
        hook.stop();
        await rm(folder, { recursive: true });
      });

      async function arrivals(during: () => Promise<unknown>): Promise<number> {
        const before = (await upstream.calls()).length;
        await during();
        return (await upstream.calls()).length - before;
      }

      it("is answered as it was", async () => {
        const reader = new EvidenceReader(gateway.adminUrl, storedKey("rita"));
        const sessions = (await reader.sessions()).map(({ id, label, records }) => ({
          id,
          records,
          ...(label === undefined ? {} : { label }),
        }));
        expect(sessions).to.have.deep.members([...known.sessions]);
        for (const { id, state } of known.approvals) expect(await stateOf(id), state).to.equal(state);
        expect(await killed()).to.deep.equal(known.killed);
        if (known.usage !== null) {
          expect(await ask<{ totals: object }>("usage"))
            .to.have.property("totals")
            .that.includes(known.usage);
        }
        const tickets = (await list("tickets")).map(({ id, state, uses }) => ({ id, state, uses }));
        expect(tickets).to.have.deep.members([...known.tickets]);
        expect((await list("manifests")).map(({ task }) => ({ task }))).to.deep.equal(known.manifests);
        const watched = (await list("sessions")).map(({ session, taints }) => ({ session, taints }));
        expect(watched).to.have.deep.members([...known.taints]);
      });

      it("is verified whole, by the gateway and, session by session, by who has nothing of it", async () => {
        expect(await ask("audit/verify", "POST")).to.include({ ok: true });
        for (const { id, label } of known.sessions) {
          const response = await fetch(`${gateway.adminUrl}/admin/v1/evidence/sessions/${id}/export`, {
            headers: { "x-api-key": storedKey("rita") },
          });
          const bundle = Buffer.from(await response.arrayBuffer());
          const said = await python.judge({ bundle, keys: [] });
          expect(said, label).to.include({ verdict: "self-attested", first_bad: null });
          expect(bundle.includes('"event":"killed"'), label).to.equal(label === "stopped" || label === "released");
        }
      });

      it("is gone on with: what could be done then can be done now, and nothing else", async () => {
        expect(await arrivals(() => call({ word: "more" }, "work"))).to.equal(1);
        expect(await arrivals(() => call({ block: true }, "work"))).to.equal(0);
        expect(await ask("audit/verify", "POST")).to.include({ ok: true });
      });

      if (isSince(era, "reviewed")) {
        it("keeps each session stopped that was stopped, until it is released", async () => {
          const more = (label: string): Promise<Answer> => call({ word: "more" }, label, undefined, stoppedPerson(era));
          expect(await arrivals(() => more("stopped"))).to.equal(0);
          expect(textOf(await more("stopped"))).to.include("is stopped until");
          expect(await arrivals(() => more("released"))).to.equal(isSince(era, "packed") ? 0 : 1);
          const release = await cli("sessions", "release", known.killed[0] ?? "", "--reason", "seen to");
          expect([release.code, release.stderr]).to.have.property("0", 0);
          expect(await arrivals(() => more("stopped"))).to.equal(1);
          expect(await killed()).to.deep.equal([]);
        });

        it("lets pass once what was approved, then or since, where the same policies judge it; and no more than that", async () => {
          const { code, stderr } = await cli("approvals", "approve", approval("pending"));
          expect([code, stderr]).to.have.property("0", 0);
          const answers = new Map<string, Answer>();
          const ran: Record<string, number> = {};
          for (const state of ["pending", "approved", "denied", "consumed"]) {
            const asked = async (): Promise<void> => {
              answers.set(state, await call({ review: state }, "reviews"));
              await call({ review: state }, "reviews");
            };
            ran[state] = await arrivals(asked);
          }
          const [then, now] = await policiesOf("reviews");
          const isSame = JSON.stringify(then) === JSON.stringify(now);
          const once = isSame ? 1 : 0;
          expect(ran).to.deep.equal({ pending: once, approved: once, denied: 0, consumed: 0 });
          for (const state of isSame ? [] : ["pending", "approved"]) {
            expect(toldOf(answers.get(state) as Answer).former_approval?.reason, state).to.equal("policy_changed");
          }
        });

        it("tells the webhook what it is owed, and once more what it refused", async () => {
          await until(() => known.owed.every((id) => hook.ids.includes(id)), "what is owed");
          expect((await list("webhooks/dead-letters")).map(({ id }) => id)).to.deep.equal(known.dead_letters);
          const [dead = ""] = known.dead_letters;
          expect(hook.ids).to.not.include(dead);
          expect((await cli("webhooks", "redeliver", dead)).code).to.equal(0);
          await until(() => hook.ids.includes(dead), "the one that was refused");
        });

        it("takes the post-mortem of an emergency that still owes one", async () => {
          expect((await list("break-glass")).map(({ id }) => id)).to.deep.equal(known.break_glass);
          const [urgent = ""] = known.break_glass;
          const { code } = await cli("break-glass", "close", urgent, "--post-mortem", "the disk was full, at night");
          expect(code).to.equal(0);
          expect(await list("break-glass")).to.deep.equal([]);
        });
      }

      if (isSince(era, "watched")) {
        it("leaves a ticket the uses that are left, and a stopped principal none", async () => {
          const token = known.token ?? "";
          expect(await arrivals(() => call({ ticket: 3 }, "tickets", token))).to.equal(1);
          expect(await arrivals(() => call({ ticket: 4 }, "tickets", token))).to.equal(0);
          expect(await arrivals(() => call({ word: "more" }, "work", undefined, "other"))).to.equal(0);
          const kills = await list("kills");
          expect(kills.map(({ subject }) => subject)).to.deep.equal([storedPrincipal("other")]);
        });

        it("holds a session to the manifest of its task", async () => {
          expect(toldOf(await call({ word: "more" }, "planned")).approval?.state).to.equal("pending");
        });
      }

      it("is backed up, and restored into a folder that verifies and goes on", async () => {
        const kills = await list("kills");
        const { code, stdout, stderr } = await cli("backup", "create");
        expect([code, stderr]).to.deep.equal([0, ""]);
        await gateway.stop();
        await cp(join(folder, "data", "keys"), join(folder, "second", "keys"), { recursive: true });
        const target = ["--data", join(folder, "second"), "--by", "ops"];
        const restored = await runGateway(["restore", join(folder, "kept", stdout.trim()), ...target], env());
        expect([restored.code, restored.stderr]).to.have.property("0", 0);
        const verified = await runGateway(["evidence", "verify", "--data", join(folder, "second")], env());
        expect([verified.code, verified.stdout]).to.have.property("0", 10);
        gateway = await start("second");
        expect(await list("kills")).to.deep.equal(kills);
        expect(await list("approvals")).to.deep.equal([]);
        expect(await arrivals(() => call({ word: "later" }, "work"))).to.equal(1);
        expect(await ask("audit/verify", "POST")).to.include({ ok: true });
      });
    });
  }
});
