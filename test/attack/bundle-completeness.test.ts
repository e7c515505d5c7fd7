import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { canonicalJson } from "../../core/action/canonical-json.ts";
import type { Json } from "../../core/action/json.ts";
import { type SigningKey, VerifyingKey } from "../../core/action/signing-key.ts";
import { evidenceRules } from "../../core/compose/evidence-rules.ts";
import { sealBundle } from "../../core/evidence/bundle/build.ts";
import type { BundleHead, BundleSeal } from "../../core/evidence/bundle/bundle-line.ts";
import { verifyBundle } from "../../core/evidence/bundle/verify.ts";
import { KeyFolder } from "../../core/evidence/key/key-folder.ts";
import type { Reason } from "../../core/evidence/record/reason.ts";
import type { EventRecord } from "../../core/evidence/record/record.ts";
import { digestState } from "../../core/evidence/state/chain-state.ts";
import type { ShownState } from "../../core/evidence/state/state-store.ts";
import { checkpointSigner, parseCheckpoint, signCheckpoint } from "../../core/evidence/tree/checkpoint.ts";
import { keys, openWorld, type World } from "../e2e/wire/world.ts";
import { Agent } from "../support/agent.ts";
import { EvidenceReader } from "../support/evidence-reader.ts";
import type { OpenLines, Presented } from "../support/forgery.ts";
import { mutateLines, seededDice } from "../support/mutation.ts";
import { PythonVerifier, type Said } from "../support/python-verifier.ts";
import { roundsOf } from "../support/rounds.ts";
import { pathOf, proofOf, rootOf } from "../support/state-world.ts";
import { until } from "../support/webhook-receiver.ts";

const rounds = roundsOf(150, 10_000);

/** Edits the lines of a bundle; what it ends in is sealed with the gateway's own key. */
type Forgery = (lines: OpenLines) => void;

describe("a bundle that its exporter cut and sealed again with the right key", function () {
  this.timeout(120_000 + rounds * 80);
  let python: PythonVerifier;
  let world: World;
  let folder: string;
  let key: SigningKey;
  let trusted: readonly string[];
  let notes: string;
  /** The session that goes on after `early` was exported, and the one that was stopped and released. */
  let early: OpenLines;
  let whole: OpenLines;
  let stopped: OpenLines;

  before(async () => {
    python = await PythonVerifier.start();
    folder = await mkdtemp(join(tmpdir(), "bundle-attack-"));
    const witness = { name: "vault", type: "file", path: join(folder, "notes"), interval_ms: 1000 };
    world = await openWorld(`evidence: { witnesses: ${JSON.stringify([witness])} }`);
    await act("whole");
    await act("stopped");
    early = await exportOf("whole");
    await act("whole");
    await tellAdmin("POST", `sessions/${await idOf("stopped")}/kill`, "{}");
    await tellAdmin("POST", `sessions/${await idOf("stopped")}/release`, '{"reason":"looked at"}');
    await until(isPublished, "the witness to have what happened");
    whole = await exportOf("whole");
    stopped = await exportOf("stopped");
    const seal = JSON.parse(whole.seal) as BundleSeal;
    const found = await new KeyFolder(join(world.gateway.folder, "data", "keys"), randomBytes).find(seal.key_id);
    if (found === undefined) throw new Error("expected the key that sealed the bundle");
    key = found;
    trusted = [key.public.text];
    notes = await readNotes();
  });

  after(async () => {
    await python.stop();
    await world.stop();
    await rm(folder, { recursive: true });
  });

  async function act(label: string): Promise<void> {
    const agent = new Agent(world.gateway.url, keys.operator, label);
    expect(await agent.call("echo", { text: label })).to.include({ status: 200 });
    await agent.hangUp();
  }

  async function tellAdmin(method: string, path: string, body?: string): Promise<string> {
    const headers = { "x-api-key": keys.admin, "content-type": "application/json" };
    const answer = await fetch(`${world.gateway.adminUrl}/admin/v1/${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
    });
    const text = await answer.text();
    expect(answer.status, `${path}: ${text}`).to.equal(200);
    return text;
  }

  async function idOf(label: string): Promise<string> {
    const sessions = await new EvidenceReader(world.gateway.adminUrl, keys.operator).sessions();
    return sessions.find((each) => each.label === label)?.id ?? "";
  }

  async function exportOf(label: string): Promise<OpenLines> {
    const lines = (await tellAdmin("GET", `evidence/sessions/${await idOf(label)}/export`)).split("\n");
    return { head: String(lines[0]), entries: lines.slice(1, -2), seal: String(lines.at(-2)) };
  }

  async function readNotes(): Promise<string> {
    const { note } = JSON.parse(await tellAdmin("GET", "evidence/checkpoint")) as { note: string };
    const chain = parseCheckpoint(note)?.chain ?? "";
    const names: readonly string[] = await readdir(join(folder, "notes")).catch(() => []);
    return names.includes(`${chain}.notes`) ? readFile(join(folder, "notes", `${chain}.notes`), "utf8") : "";
  }

  /** Whether the witness has all records there are: nothing is recorded meanwhile. */
  async function isPublished(): Promise<boolean> {
    const { note } = JSON.parse(await tellAdmin("GET", "evidence/checkpoint")) as { note: string };
    return (await readNotes()).includes(`\n${parseCheckpoint(note)?.size}\n`);
  }

  function forge(lines: OpenLines, edit: Forgery): Presented {
    const forged = { ...lines, entries: [...lines.entries] };
    edit(forged);
    return { bundle: sealBundle([forged.head, ...forged.entries], key), keys: trusted, witness: notes };
  }

  async function judge(presented: Presented): Promise<Said> {
    const { bundle, witness } = presented;
    const { checks: _, ...ours } = verifyBundle(bundle, {
      keys: trusted.map((text) => VerifyingKey.parse(text) as VerifyingKey),
      rules: evidenceRules,
      nowMs: Date.now(),
      ...(witness === undefined ? {} : { witness }),
    });
    expect(await python.judge(presented)).to.deep.equal(ours);
    return ours;
  }

  it("is witnessed as long as nothing is cut off", async () => {
    for (const lines of [whole, stopped]) {
      expect(await judge(forge(lines, () => {})))
        .to.include({ verdict: "witnessed", first_bad: null })
        .and.deep.include({ warnings: [] });
    }
  });

  it("is self-attested with notes of another chain alone, or with none in them, and both verifiers say so", async () => {
    const chain = (JSON.parse(whole.head) as BundleHead).chain;
    for (const witness of [notes.replaceAll(chain, "another-chain"), ""]) {
      const { warnings, ...said } = await judge({ ...forge(whole, () => {}), witness });
      expect(warnings).to.deep.equal([{ reason: "foreign_witness" }]);
      expect(said).to.include({ verdict: "self-attested", exit: 10, first_bad: null });
    }
    const { witness: _, ...alone } = forge(whole, () => {});
    expect((await judge(alone)).warnings, "no witness was brought").to.deep.equal([]);
  });

  const cuts: readonly (readonly [string, () => OpenLines, Forgery, Reason])[] = [
    ["its last action", () => whole, (lines) => lines.entries.splice(lastAction(lines) - 1, 2), "tail_missing"],
    [
      "all its actions",
      () => whole,
      (lines) => Object.assign(lines, { entries: lines.entries.filter((line) => !isAction(line)) }),
      "tail_missing",
    ],
    ["its `killed` record", () => stopped, (lines) => drop(lines, "session", "killed"), "stop_missing"],
    ["its `released` record", () => stopped, (lines) => drop(lines, "session", "released"), "stop_missing"],
    [
      "the record of a pack that was loaded",
      () => whole,
      (lines) => drop(lines, "extension", "loaded"),
      "extension_missing",
    ],
    [
      "the record of its configuration",
      () => whole,
      (lines) => drop(lines, "configuration", "started"),
      "configuration_missing",
    ],
    ["its states", () => whole, (lines) => editHead(lines, ({ states: _, ...head }) => head), "state_missing"],
    [
      "one of its states",
      () => whole,
      (lines) => editHead(lines, (head) => ({ ...head, states: head.states?.slice(1) ?? [] })),
      "state_missing",
    ],
  ];
  for (const [what, lines, edit, reason] of cuts) {
    it(`is incomplete without ${what}, with a witness and without [S81]`, async () => {
      const presented = forge(lines(), edit);
      const said = await judge(presented);
      expect([said.verdict, said.exit, said.first_bad?.reason]).to.deep.equal(["incomplete", 50, reason]);
      const { witness: _, ...alone } = presented;
      expect((await judge(alone)).first_bad?.reason).to.equal(reason);
    });
  }

  it("is incomplete where its checkpoint is signed again as if there were no states: the witness has them [S81]", async () => {
    const unstated: Forgery = (lines) => {
      editHead(lines, ({ states: _, ...head }) => ({ ...head, checkpoint: signAnew(head, undefined) }));
      lines.entries.splice(lastAction(lines) - 1, 2);
    };
    expect(await judge(forge(whole, unstated))).to.deep.include({
      verdict: "incomplete",
      first_bad: { reason: "state_missing", file: "states" },
    });
  });

  it("is incomplete where its checkpoint states less: the witness's state does not [S81]", async () => {
    const understated: Forgery = (lines) => {
      const [at] = lines.entries.splice(lastAction(lines) - 1, 2);
      const left = lines.entries.findLast(isAction);
      if (at === undefined || left === undefined) throw new Error("expected two actions");
      editHead(lines, (head) => {
        const [own, published] = head.states ?? [];
        if (own === undefined || published === undefined) throw new Error("expected two states");
        const shown = understate(own, head.session, actionOf(left));
        return { ...head, checkpoint: signAnew(head, digestState(shown.state)), states: [shown, published] };
      });
    };
    expect((await judge(forge(whole, understated))).first_bad).to.deep.include({
      reason: "tail_missing",
      file: "states",
    });
  });

  it("is incomplete with the states of an earlier export, which are true of less [S81]", async () => {
    const outdated: Forgery = (lines) => {
      editHead(lines, (head) => ({ ...head, states: (JSON.parse(early.head) as BundleHead).states ?? [] }));
      lines.entries.splice(lastAction(lines) - 1, 2);
    };
    expect((await judge(forge(whole, outdated))).first_bad).to.deep.equal({ reason: "state_missing", file: "states" });
  });

  it("is invalid with the proof of another session [S81]", async () => {
    const foreign: Forgery = (lines) =>
      editHead(lines, (head) => {
        const others = (JSON.parse(stopped.head) as BundleHead).states ?? [];
        const states = head.states?.map((own, at) => ({ ...own, session: (others[at] ?? own).session })) ?? [];
        return { ...head, states };
      });
    expect((await judge(forge(whole, foreign))).first_bad).to.deep.equal({ reason: "bad_state", file: "states" });
  });

  it("is invalid with a member of `consistency` that nobody checks", async () => {
    const added: Forgery = (lines) =>
      editHead(lines, (head) => ({ ...head, consistency: { ...head.consistency, more: true } }) as BundleHead);
    expect((await judge(forge(whole, added))).first_bad).to.deep.equal({ reason: "bad_schema", file: "line 1" });
  });

  it(`gets one verdict and one reason of both verifiers, changed in ${rounds} ways`, async () => {
    const reasons = new Set<string>();
    for (let round = 0; round < rounds; round++) {
      const dice = seededDice(7_919 + round);
      const presented = forge(round % 2 === 0 ? whole : stopped, (lines) => mutateLines(lines, dice));
      reasons.add((await judge(presented)).first_bad?.reason ?? "none");
    }
    expect(reasons.size, [...reasons].join()).to.be.at.least(8);
  });

  /** The bundle's checkpoint with another state, or none, signed by the chain's own key. */
  function signAnew(head: BundleHead, state: string | undefined): string {
    const {
      chain,
      head: last,
      root,
      size,
      time,
    } = parseCheckpoint(head.checkpoint) ?? expect.fail("expected a checkpoint");
    return signCheckpoint({ chain, size, root, head: last, time, state }, [checkpointSigner(chain, key)]);
  }
});

function editHead(lines: OpenLines, edit: (head: BundleHead) => BundleHead): void {
  lines.head = canonicalJson(edit(JSON.parse(lines.head) as BundleHead) as unknown as Json);
}

/** A map with the session and its principal alone, in which the session ends with this action. */
function understate(own: ShownState, session: string, last: { seq: number; principal: { id: string } }): ShownState {
  const [atSession, atPrincipal] = [pathOf("session", session), pathOf("principal", last.principal.id)];
  const leaves = new Map([
    [atSession, [last.seq + 1, 0]],
    [atPrincipal, [0]],
  ]);
  return {
    principal: proofOf(leaves, atPrincipal),
    session: proofOf(leaves, atSession),
    state: { ...own.state, map: rootOf(leaves) },
  };
}

function actionOf(line: string): { seq: number; principal: { id: string } } {
  return (JSON.parse(line) as { record: { seq: number; principal: { id: string } } }).record;
}

function isAction(line: string): boolean {
  return ["decision", "outcome"].includes((JSON.parse(line) as { record: EventRecord }).record.kind);
}

function lastAction({ entries }: OpenLines): number {
  return entries.findLastIndex(isAction);
}

/** Drops the last event of a kind that says so. */
function drop(lines: OpenLines, kind: string, event: string): void {
  const at = lines.entries.findLastIndex((line) => {
    const { record } = JSON.parse(line) as { record: EventRecord };
    return record.kind === kind && record.detail.event === event;
  });
  expect(at, `${kind} ${event}`).to.not.equal(-1);
  lines.entries.splice(at, 1);
}
