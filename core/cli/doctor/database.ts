import { GatewayError } from "../../action/error.ts";
import type { StoreConfig } from "../../config/gateway-config.ts";
import { type DoctorCheck, type DoctorFinding, fail, ok } from "./finding.ts";

/** Checks whether replicas can use their database, and whether one of them serves. Creates their tables where there are none. */
export const checkDatabase: DoctorCheck = async ({ config: { store } }) => [
  store === null ? ok("none: one gateway on its data folder") : await judgeDatabase(store),
];

async function judgeDatabase({ url, urlVariable, leaseMs }: StoreConfig): Promise<DoctorFinding> {
  const { ReplicaDatabase } = await import("../../replica/database.ts");
  try {
    const database = await ReplicaDatabase.open({ url, timeoutMs: leaseMs });
    const { isHeld, address, use } = await database.readLease().finally(() => database.close());
    if (use !== "serving")
      return fail(`the database of ${urlVariable} is \`${use}\``, "see `gateway store migrate --help`");
    return ok(isHeld ? `the replica at ${address} owns the store` : "no replica owns the store now");
  } catch (cause) {
    return fail(GatewayError.from(cause).message, `start PostgreSQL, and check what ${urlVariable} holds`);
  }
}

/** Checks whether the database of reports can be used, and by this version. */
export const checkReports: DoctorCheck = async ({ config: { reports } }) => {
  if (reports === null) return [ok("no database is fed")];
  const { ReportDatabase } = await import("../../report/database.ts");
  const { describeDatabaseFailure } = await import("../../store/postgresql.ts");
  const database = await ReportDatabase.load(reports.url);
  try {
    return [
      ok((await database.hasTables()) ? "its tables are there" : "its tables are created when the gateway starts"),
    ];
  } catch (cause) {
    if (cause instanceof GatewayError) return [fail(cause.message, "see `gateway help` for the version you run")];
    const fix = `start PostgreSQL, and check what ${reports.urlVariable} holds`;
    return [fail(`the database of ${reports.urlVariable} cannot be used (${describeDatabaseFailure(cause)})`, fix)];
  } finally {
    await database.close();
  }
};
