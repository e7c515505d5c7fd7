import { expect } from "chai";
import { fieldCommitment, fieldsDigest, type PrivateField } from "../../../core/evidence/private/private-field.ts";
import type { ActionRecord } from "../../../core/evidence/record/record.ts";
import { send, type WireResponse } from "../../support/wire.ts";
import { echoCall, type KeyHolder, keys, openWorld, post, type World } from "./world.ts";

type Disclosed = ActionRecord & {
  readonly disclosed?: Readonly<Partial<Record<"arguments" | "output", readonly PrivateField[]>>>;
};

interface Page {
  readonly items: readonly Disclosed[];
  readonly next: string | null;
}

const redacted = 'evidence: { redact_fields: ["echo:token"] }';

describe("GET /admin/v1/evidence/sessions/{id}?disclose=true", () => {
  let world: World;
  let session: string;

  before(async () => {
    world = await openWorld(redacted);
    await post(world, echoCall('{"mark":"what Anna asked","token":"a-secret-token"}'));
    const { body } = await get("operator", "");
    session = (JSON.parse(body) as { items: readonly { id: string }[] }).items[0]?.id ?? "";
  });

  after(() => world.stop());

  function get(holder: KeyHolder, path: string): Promise<WireResponse> {
    const target = `/admin/v1/evidence/sessions${path}`;
    return send(world.gateway.adminUrl, { method: "GET", target, headers: [["x-api-key", keys[holder]]] });
  }

  async function show(holder: KeyHolder, query: string): Promise<Page> {
    const { status, body } = await get(holder, `/${session}?${query}`);
    expect(status, body).to.equal(200);
    return JSON.parse(body) as Page;
  }

  for (const holder of ["operator", "admin"] as const) {
    it(`shows ${holder} each record's fields as far as they are kept`, async () => {
      const { items } = await show(holder, "disclose=true");
      const [decision, outcome] = items;
      const asked = decision?.disclosed?.arguments ?? [];
      expect(asked.map(({ name, value }) => [name, value])).to.have.deep.members([
        ["mark", "what Anna asked"],
        [undefined, undefined],
      ]);
      expect(fieldsDigest(asked.map(({ commitment }) => commitment))).to.equal(decision?.action.arguments_digest);
      for (const { commitment, name, salt, value } of outcome?.disclosed?.output ?? []) {
        if (name === undefined || salt === undefined || value === undefined) throw new Error("expected a whole field");
        expect(fieldCommitment({ name, salt, value })).to.equal(commitment);
      }
      expect(outcome?.disclosed?.output?.map(({ name }) => name)).to.include("content");
    });
  }

  it("keeps no value of a field that configuration redacts", async () => {
    const [decision] = (await show("admin", "disclose=true")).items;
    expect(JSON.stringify(decision?.disclosed)).to.include("what Anna asked").and.to.not.include("a-secret-token");
  });

  it("shows no field unless asked", async () => {
    for (const query of ["", "disclose=false"]) {
      expect(JSON.stringify(await show("operator", query))).to.not.include("Anna");
    }
  });

  it("pages as without", async () => {
    const first = await show("operator", "disclose=true&limit=1");
    expect([first.items.length, first.next]).to.deep.equal([1, "1"]);
    const second = await show("operator", `disclose=true&limit=1&cursor=${first.next}`);
    expect([second.items[0]?.kind, second.next]).to.deep.equal(["outcome", null]);
  });

  it("ends a page early where its values are many", async () => {
    const large = "x".repeat(4_000_000);
    for (let count = 0; count < 3; count++) await post(world, echoCall(`{"mark":"${large}"}`));
    const first = await show("operator", "disclose=true&limit=100");
    expect(first.items.length).to.be.within(5, 7);
    expect(first.next).to.equal(String(first.items.length));
    const rest = await show("operator", `disclose=true&limit=100&cursor=${first.next}`);
    expect(first.items.length + rest.items.length).to.equal(8);
  });

  it("tells a viewer 403, a foreign tenant 404, and shows neither anything", async () => {
    const viewer = await get("viewer", `/${session}?disclose=true`);
    expect([viewer.status, JSON.parse(viewer.body).detail]).to.deep.equal([
      403,
      "this role may not do that: `viewer` lacks `evidence.disclose`",
    ]);
    expect((await get("foreign", `/${session}?disclose=true`)).status).to.equal(404);
  });

  it("refuses other values than true and false", async () => {
    for (const query of ["disclose=yes", "disclose", "disclose=true&disclose=true"]) {
      expect((await get("operator", `/${session}?${query}`)).status, query).to.equal(400);
    }
  });
});
