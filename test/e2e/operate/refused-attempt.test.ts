import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import type { JsonObject } from "../../../core/action/json.ts";
import { maxRecorded } from "../../../core/http/refused-attempt.ts";
import { ReviewWorld, recordsIn } from "../../support/review-world.ts";

const unknown = `apr_${"0".repeat(32)}`;

/** Asks first, then stops the gateway and reads what that left in the chain. */
describe("what people are refused on the admin port is on record", () => {
  let folder: string;
  let world: ReviewWorld;
  let pending: string;
  let refused: readonly JsonObject[];
  const statuses: number[] = [];
  const flooded: number[] = [];
  let isSound: boolean;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "refused-"));
    world = await ReviewWorld.start("", folder);
    pending = await world.hold({ to: "nobody" });
    const vera = world.as("vera");
    for (const answer of [
      await vera.approve(pending),
      await vera.ask("POST", "/evidence/keys/rotate"),
      await vera.show("a-password-in-the-wrong-place"),
      await vera.ask("POST", "/graphql", { query: `{ a: approval(id: "${unknown}") { id } evidence { seq } }` }),
      await vera.show(pending),
      await world.as("rita").list("?limit=0"),
    ])
      statuses.push(answer.status);
    for (const key of [undefined, "w".repeat(40)]) {
      const headers: Record<string, string> = key === undefined ? {} : { "x-api-key": key };
      statuses.push((await fetch(`${world.gateway.adminUrl}/admin/v1/approvals/${pending}`, { headers })).status);
    }
    const asked = Array.from({ length: maxRecorded + 500 }, () => world.as("olaf").show(unknown));
    for (const { status } of await Promise.all(asked)) flooded.push(status);
    isSound = (await world.as("adam").ask<{ ok: boolean }>("POST", "/audit/verify")).body.ok;
    await world.gateway.stop();
    const records = await recordsIn(join(folder, "data"));
    refused = records.flatMap(({ kind, detail }) => (kind === "admin" && detail.action === "refused" ? [detail] : []));
  });
  after(async () => {
    await world.upstream.stop();
    await rm(folder, { recursive: true });
  });

  const of = (person: "vera" | "olaf"): readonly JsonObject[] =>
    refused.filter(({ principal }) => principal === world.principal(person));

  it("with who asked, where, for what, and why not; a text that is no id is not repeated [S4]", () => {
    expect(statuses).to.deep.equal([403, 403, 404, 200, 200, 400, 401, 401]);
    const asked = { action: "refused", principal: world.principal("vera") };
    expect(of("vera")).to.deep.equal([
      { ...asked, route: "admin.approve", code: "ROLE_FORBIDDEN", subject: pending },
      { ...asked, route: "admin.rotate", code: "ROLE_FORBIDDEN" },
      { ...asked, route: "admin.approval", code: "NOT_FOUND" },
      { ...asked, route: "admin.graphql", code: "NOT_FOUND", subject: unknown },
    ]);
  });

  it("one by one up to a bound, and as a number beyond it [S4]", () => {
    expect(new Set(flooded)).to.deep.equal(new Set([404]));
    const [counts, each] = [
      of("olaf").filter(({ count }) => count !== undefined),
      of("olaf").filter((one) => one.subject),
    ];
    expect(each).to.have.length(maxRecorded);
    expect(counts.map(({ count }) => count)).to.deep.equal([500]);
  });

  it("of known callers alone, in a chain that verifies", () => {
    expect(refused).to.have.length(of("vera").length + of("olaf").length);
    expect(isSound).to.equal(true);
  });
});
