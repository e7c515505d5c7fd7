import { expect } from "chai";
import type { JsonObject } from "../../../core/action/json.ts";
import { maxRecorded } from "../../../core/http/refused-attempt.ts";
import { type Probe, probesFor, questionsFor, ways } from "../../support/foreign-probe.ts";
import { ForeignWorld, faceOf, type Kind, kinds, twinOf } from "../../support/foreign-world.ts";
import { type RouteId, routes } from "../../support/route-table.ts";
import type { WireResponse } from "../../support/wire.ts";

const withId = (Object.keys(routes) as RouteId[]).filter(
  (id) => routes[id].port === "admin" && routes[id].path.includes(":"),
);

/** What became of a probe. */
interface Faces extends Probe {
  readonly foreign: string;
  readonly unknown: string;
}

const nobody = Object.fromEntries(kinds.map((kind) => [kind, ""])) as Readonly<Record<Kind, string>>;
const places = new Set([...probesFor(nobody), ...questionsFor(nobody, "")].map(({ place }) => place));

describe("what is another tenant's", () => {
  let world: ForeignWorld;
  let traces: readonly string[];
  let refused: readonly JsonObject[];
  const faces: Faces[] = [];
  /** What `foreign` was told when asking with a cursor that `acme` was given. */
  const nexts: [next: string, face: string][] = [];
  const backups: WireResponse[] = [];
  const sizes: number[] = [];
  /** What an admin of `acme` is told of the same requests, afterwards. */
  const owners = new Map<string, number>();

  before(async () => {
    world = await ForeignWorld.start();
    const { site, ids } = world;
    traces = [...Object.values(ids).filter((id) => id.length > 20), site.principal("adam"), "of-acme", "weekly"];
    sizes.push(await world.size());
    for (const probe of [...probesFor(ids), ...questionsFor(ids, world.own)]) faces.push(await compare(probe));
    for (const [id, { isList }] of ways) if (isList) await askWithNext(routes[id].path);
    const kept = "/admin/v1/resilience/backups";
    backups.push(await world.ask("foreign", "POST", "/admin/v1/resilience/backup"));
    for (const target of [kept, `${kept}?cursor=${ids.session}`])
      backups.push(await world.ask("foreign", "GET", target));
    sizes.push(await world.size());
    for (const probe of probesFor(ids).filter(({ what }) => !/^cursor|^body task$/.test(what))) {
      const { status } = await world.ask("adam", probe.method, probe.target(probe.id), probe.body?.(probe.id));
      owners.set(`${probe.place} ${probe.what}`, status);
    }
    await site.stop();
    refused = await world.refused("other");
  });
  after(() => world.remove());

  /** What of `acme` is in an answer. */
  function told(face: string): readonly string[] {
    return traces.filter((trace) => face.includes(trace));
  }

  async function compare(probe: Probe): Promise<Faces> {
    const { method, target, body, id } = probe;
    const face = async (named: string): Promise<string> =>
      faceOf(await world.ask("foreign", method, target(named), body?.(named)), named);
    return { ...probe, foreign: await face(id), unknown: await face(twinOf(id)) };
  }

  async function askWithNext(path: string): Promise<void> {
    const { body } = await world.ask("adam", "GET", `${path}?limit=1`);
    const { next } = JSON.parse(body) as { readonly next: string | null };
    if (next === null) return;
    nexts.push([next, faceOf(await world.ask("foreign", "GET", `${path}?cursor=${next}`), next)]);
  }

  it("is asked for wherever a route takes an id [S4]", () => {
    const taken = ways.flatMap(([id, { path }]) => (path === undefined ? [] : [id]));
    expect(withId).to.have.members(taken);
  });

  it("is found by whoever it belongs to [S4]", () => {
    const missed = [...owners].filter(([, status]) => ![200, 202, 409].includes(status));
    expect(missed).to.deep.equal([]);
    expect(owners.size).to.be.greaterThan(20);
  });

  for (const place of places) {
    it(`is to ${place} as unknown as what nobody has [S4]`, () => {
      for (const { what, foreign, unknown } of faces.filter((each) => each.place === place)) {
        expect(foreign, what).to.equal(unknown);
        expect(told(foreign), what).to.deep.equal([]);
      }
    });
  }

  it("is in no page, whatever cursor of its lists is asked with [S4]", () => {
    expect(nexts.length).to.be.greaterThan(4);
    for (const [next, face] of nexts) {
      expect(face, next).to.match(/^(?:200|400)\n/);
      expect(told(face), next).to.deep.equal([]);
    }
  });

  it("is what it was [S4]", () => {
    expect(sizes[1]).to.equal(sizes[0]);
  });

  it("was asked for: each attempt is in the chain of whoever made it, as for what nobody has [S4]", () => {
    const unknown = faces.filter(({ foreign }) => /^404|"code":"NOT_FOUND"/.test(foreign));
    expect(refused.length).to.equal(unknown.length * 2 + backups.length);
    expect(refused.length).to.be.at.most(maxRecorded);
    const ids = Object.values(world.ids);
    const counts = (subjects: readonly string[]): number =>
      refused.filter(({ subject }) => subjects.includes(String(subject))).length;
    expect(counts(ids)).to.be.greaterThan(20);
    expect(counts(ids)).to.equal(counts(ids.map(twinOf)));
    const bodies = ["admin.kill_scope", "admin.release_scope", "admin.ticket_issue", "admin.declare", "admin.erase"];
    const others = ["admin.graphql", "admin.backup", "admin.backups"];
    expect(new Set(refused.map(({ route }) => route))).to.deep.equal(new Set([...withId, ...bodies, ...others]));
    const principal = world.site.principal("foreign");
    for (const detail of refused) expect(detail).to.include({ action: "refused", principal });
  });

  it("is in a backup that only one tenant makes and sees [S4]", () => {
    expect(backups.map(({ status }) => status)).to.deep.equal([403, 403, 403]);
    for (const { body } of backups) expect(body).to.include("`resilience.tenant`").and.not.include("acme");
    expect(refused.filter(({ code }) => code === "ROLE_FORBIDDEN").map(({ route }) => route)).to.deep.equal([
      "admin.backup",
      "admin.backups",
      "admin.backups",
    ]);
  });
});
