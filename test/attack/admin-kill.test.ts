import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import type { EventRecord } from "../../core/evidence/record/record.ts";
import { changes } from "../../core/operation/operation.ts";
import { DiskFault } from "../support/disk-fault.ts";
import { OperationWorld } from "../support/operation-world.ts";
import { roundsOf } from "../support/rounds.ts";
import { type AdminRouteId, operations, routes } from "../support/route-table.ts";

/** Where a process ends: amid its first write, before its first sync, after that, and once it has answered. */
const phases = ["torn", "before", "after", "answered"] as const;
type Phase = (typeof phases)[number];

/** Operations that may change something, by the table of the admin port; a query in GraphQL only reads. */
const mutations = (Object.keys(operations) as AdminRouteId[]).filter(
  (id) => changes(operations[id]) && id !== "admin.graphql",
);

/** How the effect of one operation is seen. `mark`: a text that is in its request alone. */
interface Effect {
  /** The `event` or `action` of the record that it leaves. */
  readonly record: string;
  /** True where the record holds the mark. */
  readonly isMarked: boolean;
  readonly prepare?: (world: OperationWorld, mark: string) => Promise<unknown>;
  /** In place of what `OperationWorld` asks. */
  readonly id?: (mark: string) => string;
  readonly body?: (world: OperationWorld, mark: string) => object;
  /** Absent where nothing but the record shows it, or a job does that goes on after the answer. */
  readonly isThere?: (world: OperationWorld, about: string, mark: string) => Promise<boolean>;
  /** What others need afterwards. */
  readonly undo?: (world: OperationWorld, about: string, mark: string) => Promise<unknown>;
}

interface Items {
  readonly items: readonly Readonly<Record<string, unknown>>[];
}

const listed = async (world: OperationWorld, path: string, is: (item: Readonly<Record<string, unknown>>) => boolean) =>
  (await world.ask<Items>(path)).items.some(is);
const stateIs = (state: string) => async (world: OperationWorld, id: string) =>
  (await world.site.show(id)).state === state;
const kill = (world: OperationWorld) => world.ask("kills", "adam", { scope: "tenant", note: "odd" });
const release = (world: OperationWorld) =>
  world.ask("kills/release", "adam", { scope: "tenant", reason: "over" }).catch(() => undefined);
/** Of one scope there is one manifest at a time. */
const withdraw = (world: OperationWorld, mark: string) =>
  fetch(`${world.url}/admin/v1/manifests/${mark}`, {
    method: "DELETE",
    headers: { "x-api-key": world.site.key("adam"), "content-type": "application/json" },
  });
const isKilled = (world: OperationWorld, session: string) =>
  listed(world, "sessions/killed?limit=500", (item) => item.session === session);
const isTenantKilled = (world: OperationWorld) => listed(world, "kills?limit=500", ({ scope }) => scope === "tenant");

const effects: Readonly<Record<string, Effect>> = {
  "admin.rotate": { record: "evidence.rotate", isMarked: false },
  "admin.prune": {
    record: "evidence.prune",
    isMarked: false,
    body: (_, reason) => ({ before: "2026-01-31T00:00:00Z", reason }),
  },
  "admin.erase": {
    record: "evidence.erase",
    isMarked: false,
    body: (_, reason) => ({ seq: 1, fields: ["arguments.email"], reason }),
  },
  "admin.backup": { record: "backup.create", isMarked: false },
  "admin.test_action": { record: "policy.test_action", isMarked: false },
  "admin.simulate": { record: "policy.simulate", isMarked: false },
  "admin.redeliver": { record: "webhook.redeliver", isMarked: false },
  "admin.approve": {
    record: "approved",
    isMarked: true,
    body: (_, comment) => ({ comment, scope: "exact" }),
    isThere: stateIs("approved"),
  },
  "admin.deny": { record: "denied", isMarked: true, body: (_, comment) => ({ comment }), isThere: stateIs("denied") },
  "admin.break_glass_close": {
    record: "post_mortem",
    isMarked: true,
    body: (_, mark) => ({ post_mortem: `it was down; two people were told: ${mark}` }),
    isThere: async (world, id) => !(await listed(world, "break-glass", (item) => JSON.stringify(item).includes(id))),
  },
  "admin.session_reset": { record: "reset", isMarked: true, body: (_, reason) => ({ reason }) },
  "admin.kill": {
    record: "killed",
    isMarked: true,
    body: (_, note) => ({ note }),
    isThere: isKilled,
    undo: (world, id) => world.ask(`sessions/${id}/release`, "adam", { reason: "over" }).catch(() => undefined),
  },
  "admin.release": {
    record: "released",
    isMarked: true,
    prepare: async (world) => world.ask(`sessions/${await world.session()}/kill`, "adam", { note: "odd" }),
    body: (_, reason) => ({ reason }),
    isThere: async (world, id) => !(await isKilled(world, id)),
    undo: (world, id) => world.ask(`sessions/${id}/release`, "adam", { reason: "over" }).catch(() => undefined),
  },
  "admin.kill_scope": {
    record: "killed",
    isMarked: true,
    body: (_, note) => ({ scope: "tenant", note }),
    isThere: isTenantKilled,
    undo: release,
  },
  "admin.release_scope": {
    record: "released",
    isMarked: true,
    prepare: kill,
    body: (_, reason) => ({ scope: "tenant", reason }),
    isThere: async (world) => !(await isTenantKilled(world)),
    undo: release,
  },
  "admin.ticket_issue": {
    record: "issued",
    isMarked: true,
    body: (world, mark) => ({ ...world.order(), tools: ["echo", mark] }),
    isThere: (world, _, mark) => listed(world, "tickets?limit=500", (item) => JSON.stringify(item).includes(mark)),
  },
  "admin.ticket_revoke": {
    record: "revoked",
    isMarked: true,
    body: (_, reason) => ({ reason }),
    isThere: (world, id) => listed(world, "tickets?limit=500", (item) => item.id === id && item.revoked !== null),
  },
  "admin.declare": {
    record: "manifest.declare",
    isMarked: true,
    body: (world, mark) => world.manifest(mark),
    isThere: (world, _, mark) => listed(world, "manifests?limit=500", ({ task }) => task === mark),
    undo: (world, _, mark) => withdraw(world, mark),
  },
  "admin.withdraw": {
    record: "manifest.withdraw",
    isMarked: true,
    prepare: (world, mark) => world.ask("manifests", "adam", world.manifest(mark)),
    id: (mark) => mark,
    isThere: async (world, _, mark) => !(await listed(world, "manifests?limit=500", ({ task }) => task === mark)),
  },
  "admin.definition_deny": {
    record: "definition.deny",
    isMarked: true,
    body: (_, comment) => ({ comment }),
    isThere: (world, id) => listed(world, "definitions?state=denied&limit=500", (item) => item.id === id),
  },
  "admin.definition_approve": {
    record: "definition.approve",
    isMarked: true,
    body: (_, comment) => ({ comment }),
    isThere: async (world, id) =>
      !(await listed(world, "definitions?state=denied&limit=500", (item) => item.id === id)) &&
      !(await listed(world, "definitions?limit=500", (item) => item.id === id)),
  },
};

/** What became of one kill. */
interface Round {
  readonly id: AdminRouteId;
  readonly phase: Phase;
  readonly mark: string;
  readonly isAnswered: boolean;
  /** Undefined where only the record can show it. */
  readonly isThere: boolean | undefined;
  readonly isSound: boolean;
}

/** A number that a text stands for, the same on every machine. */
function numberOf(text: string): number {
  return createHash("sha256").update(text).digest().readUInt32BE();
}

const day = new Date().toISOString().slice(0, 10);
/** Each world has every operation at one phase; in all of them, every operation at every phase. */
const worldCount = roundsOf(1, phases.length);
const sampleSize = roundsOf(5, mutations.length);
const shift = numberOf(day) % phases.length;
const sample = new Set(mutations.toSorted((a, b) => numberOf(day + a) - numberOf(day + b)).slice(0, sampleSize));

describe(`kill -9 while an operation of the admin port changes something (${day})`, () => {
  it("has an effect to look for with every operation of the table that changes something", () => {
    expect(Object.keys(effects)).to.have.members(mutations);
  });

  for (let turn = 0; turn < worldCount; turn++) {
    describe(`in world ${turn + 1}`, () => {
      let world: OperationWorld;
      let folder: string;
      let disk: DiskFault;
      const rounds: Round[] = [];
      let records: readonly EventRecord[];

      before(async () => {
        folder = await mkdtemp(join(tmpdir(), "admin-kill-"));
        disk = await DiskFault.compile(folder);
        world = await OperationWorld.start();
        await world.site.stop();
        await world.startAgain(disk.env);
        for (const [at, id] of mutations.entries()) {
          if (sample.has(id)) rounds.push(await killAt(id, phases[(at + turn + shift) % phases.length] as Phase));
        }
        [records = []] = await world.leave(["acme"]);
      });
      after(async () => {
        await world.stop();
        await rm(folder, { recursive: true });
      });

      async function killAt(id: AdminRouteId, phase: Phase): Promise<Round> {
        const effect = effects[id] as Effect;
        const mark = `mark-${numberOf(`${day}${turn}${id}`)}`;
        await effect.prepare?.(world, mark);
        const asking = world.askings()[id];
        const about = effect.id?.(mark) ?? (await asking.id?.()) ?? "";
        const body = (effect.body?.(world, mark) ?? asking.body?.()) as object | undefined;
        if (phase !== "answered") await disk.beginKill(phase, "/data/");
        const isAnswered = await ask(id, about, body);
        await world.site.kill9();
        await disk.end();
        await world.startAgain(disk.env);
        const isThere = await effect.isThere?.(world, about, mark);
        const isSound = (await world.site.evidence.verify()).ok;
        await effect.undo?.(world, about, mark);
        return { id, phase, mark, isAnswered, isThere, isSound };
      }

      /** Returns whether the operation was acknowledged. */
      async function ask(id: AdminRouteId, about: string, body: object | undefined): Promise<boolean> {
        const { method, path } = routes[id];
        try {
          const response = await fetch(world.url + path.replace(/:\w+/, about), {
            method,
            headers: { "x-api-key": world.site.key("adam"), "content-type": "application/json" },
            body: JSON.stringify(body ?? {}),
          });
          const text = await response.text();
          expect(response.ok, `${id}: ${text}`).to.equal(true);
          return true;
        } catch (error) {
          if (error instanceof TypeError) return false; // the connection ended with the process
          throw error;
        }
      }

      function recordsOf({ id, mark }: Round): number {
        const { record, isMarked } = effects[id] as Effect;
        return records.filter(
          ({ detail }) =>
            (detail?.action === record || detail?.event === record) &&
            (!isMarked || JSON.stringify(detail).includes(mark)),
        ).length;
      }

      it("acknowledges nothing that is not durable: where a kill came before the first sync, nobody was answered [S65]", () => {
        for (const { id, phase, isAnswered } of rounds) {
          expect(isAnswered, `${id} ${phase}`).to.equal(phase === "answered" || (phase === "after" && isAnswered));
        }
      });

      it("leaves each effect wholly there or wholly not, with its record, and every acknowledged one [S45, S65]", () => {
        for (const round of rounds) {
          const { id, phase, isAnswered, isThere } = round;
          const count = recordsOf(round);
          const what = `${id} ${phase}: ${count} records`;
          expect(count, what).to.be.within(isAnswered ? 1 : 0, 1);
          if (isThere !== undefined) expect(isThere, what).to.equal(count === 1);
        }
        expect(rounds).to.have.length(sample.size);
      });

      it("leaves evidence that verifies, and a gateway that goes on [S46, S64]", () => {
        for (const { id, phase, isSound } of rounds) expect(isSound, `${id} ${phase}`).to.equal(true);
      });
    });
  }
});
