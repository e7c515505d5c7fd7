import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import type { JsonObject } from "../../../core/action/json.ts";
import type { Principal } from "../../../core/action/principal.ts";
import { maxRecorded, RefusedAttempts } from "../../../core/http/refused-attempt.ts";

const windowMs = 50;
const unknown = new GatewayError("NOT_FOUND", "no such approval");
const id = `apr_${"a".repeat(32)}`;

describe("RefusedAttempts", () => {
  let records: JsonObject[];
  let warnings: object[];
  /** What the next records are refused with. */
  let fault: GatewayError | undefined;
  let attempts: RefusedAttempts;

  beforeEach(() => {
    [records, warnings, fault] = [[], [], undefined];
    attempts = new RefusedAttempts({
      ledger: {
        recordEvent: async (tenant, kind, detail) => {
          if (fault !== undefined) throw fault;
          records.push({ tenant, kind, ...detail });
        },
      },
      onWarning: (_, fields) => warnings.push(fields),
      windowMs,
    });
  });
  afterEach(() => attempts.close());

  const settle = (error = unknown, subject: unknown = id, caller = principalOf("a")): Promise<GatewayError> =>
    attempts.settle(caller, { route: "admin.approval", subject }, error);

  async function flood(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, () => settle()));
  }

  it("answers what was refused, once that is on record", async () => {
    expect(await settle()).to.equal(unknown);
    expect(records).to.deep.equal([
      {
        tenant: "acme",
        kind: "admin",
        action: "refused",
        principal: "principal-a",
        route: "admin.approval",
        code: "NOT_FOUND",
        subject: id,
      },
    ]);
  });

  for (const code of ["INVALID_PARAMS", "APPROVAL_STATE", "KEY_UNKNOWN", "RATE_LIMITED", "INTERNAL"] as const) {
    it(`leaves ${code} to the log`, async () => {
      const error = new GatewayError(code);
      expect(await settle(error)).to.equal(error);
      expect(records).to.deep.equal([]);
    });
  }

  for (const subject of [
    `tkt_${"0".repeat(32)}`,
    `session-v1-${"0".repeat(64)}`,
    `principal-v1-${"f".repeat(64)}`,
    "msg_01a20282-65d9-7646-85d2-a0e3c69e2eae",
    "01a20282-65d9-7646-85d2-a0e3c69e2eae",
  ]) {
    it(`names \`${subject}\`, which the gateway may have given out`, async () => {
      await settle(unknown, subject);
      expect(records[0]?.subject).to.equal(subject);
    });
  }

  for (const subject of [
    "hunter2",
    `${id}\n`,
    ` ${id}`,
    `${id}a`,
    `APR_${"a".repeat(32)}`,
    `apr_${"a".repeat(31)}\u202e`,
    "x".repeat(100_000),
    7,
    null,
    [id],
  ]) {
    it(`does not name ${JSON.stringify(subject)?.slice(0, 24)}, which may be anything [S66]`, async () => {
      await settle(unknown, subject);
      expect(records).to.have.length(1);
      expect(records[0]).to.not.have.property("subject");
    });
  }

  it("counts what is beyond the bound, and records how many there were when the time is over", async () => {
    await flood(maxRecorded + 1_000);
    expect(records).to.have.length(maxRecorded);
    await sleep(2 * windowMs);
    expect(records.slice(maxRecorded)).to.deep.equal([
      { tenant: "acme", kind: "admin", action: "refused", principal: "principal-a", count: 1_000 },
    ]);
    await settle();
    expect(records).to.have.length(maxRecorded + 2);
  });

  it("bounds each principal by itself", async () => {
    await flood(maxRecorded + 1);
    await settle(unknown, id, principalOf("b"));
    expect(records).to.have.length(maxRecorded + 1);
  });

  it("records the count at the end, and nothing where there is none", async () => {
    await settle(unknown, id, principalOf("b"));
    await flood(maxRecorded + 2);
    await attempts.close();
    expect(records.slice(maxRecorded + 1).map(({ count }) => count)).to.deep.equal([2]);
  });

  describe("when nothing can be recorded", () => {
    beforeEach(() => {
      fault = new GatewayError("EVIDENCE_UNAVAILABLE");
    });

    it("answers that, however often it is asked", async () => {
      for (let asked = 0; asked < 2 * maxRecorded; asked++) expect(await settle()).to.equal(fault);
      expect(warnings).to.deep.equal([]);
    });

    it("says in the log how many were only counted", async () => {
      const failing = fault;
      fault = undefined;
      await flood(maxRecorded + 3);
      fault = failing;
      await attempts.close();
      expect(warnings).to.deep.equal([{ principal: "principal-a", count: 3, cause: failing?.message }]);
    });
  });
});

function principalOf(name: string): Principal {
  return { id: `principal-${name}`, tenant: "acme", role: "viewer", keyId: name };
}
