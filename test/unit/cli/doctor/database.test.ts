import { appendFile } from "node:fs/promises";
import { expect } from "chai";
import { checkDatabase, checkReports } from "../../../../core/cli/doctor/database.ts";
import type { StoreConfig } from "../../../../core/config/gateway-config.ts";
import { ReplicaDatabase } from "../../../../core/replica/database.ts";
import { ReportDatabase } from "../../../../core/report/database.ts";
import { runCommand } from "../../../support/command-host.ts";
import { PostgresServer } from "../../../support/postgresql.ts";
import { type DoctorWorld, openDoctorWorld, told } from "./world.ts";

const password = "a-password-of-the-database";

describe("gateway doctor, of databases", () => {
  let world: DoctorWorld;
  let postgres: PostgresServer;
  let url: string;

  before(async () => {
    [world, postgres] = await Promise.all([openDoctorWorld(), PostgresServer.start()]);
    url = (await postgres.createDatabase("gateway")).replace("auditor@", `auditor:${password}@`);
  });

  after(() => Promise.all([world.remove(), postgres.stop()]));

  const storeOf = (at: string): StoreConfig => ({
    ...{ engine: "postgres", url: at, urlVariable: "STORE_URL", secret: "s".repeat(32), secretVariable: "SECRET" },
    ...{ host: null, replicaPort: 1, leaseMs: 2_000 },
  });

  async function foundOf(at: string): Promise<readonly string[]> {
    const target = await world.target({ store: storeOf(at), reports: { url: at, urlVariable: "REPORT_URL" } });
    const found = [...(await checkDatabase(target)), ...(await checkReports(target))];
    expect(JSON.stringify(found)).to.not.include(password);
    return found.map(({ status, text }) => `${status} ${text}`);
  }

  it("need none", async () => {
    const target = await world.target();
    const found = [...(await checkDatabase(target)), ...(await checkReports(target))];
    expect(found.map(({ status }) => status)).to.deep.equal(["ok", "ok"]);
  });

  it("says who owns the store, and whether the tables of reports are there", async () => {
    expect(await foundOf(url)).to.deep.equal([
      "ok no replica owns the store now",
      "ok its tables are created when the gateway starts",
    ]);
    const database = await ReplicaDatabase.open({ url, timeoutMs: 5_000 });
    await database.claim("replica-1:8500", 60_000);
    await database.close();
    const reports = await ReportDatabase.load(url);
    await reports.createTables();
    await reports.close();
    expect(await foundOf(url)).to.deep.equal([
      "ok the replica at replica-1:8500 owns the store",
      "ok its tables are there",
    ]);
  });

  it("fails for tables of another version", async () => {
    for (const table of ["gateway_lease", "gateway_report"]) {
      const { code, stderr } = await postgres.sql(`UPDATE ${table} SET format = 99`, "gateway");
      expect(code, stderr).to.equal(0);
    }
    const [store, reports] = await foundOf(url);
    expect(store).to.match(/^fail .*expected database format `1`, got `99`/);
    expect(reports).to.match(/^fail .*expected report tables of format `1`, got `99`/);
  });

  it("fails for a database that never makes sure that its system has written", async () => {
    for (const statement of ["ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()"]) await postgres.sql(statement);
    const target = await world.target({ store: storeOf(await postgres.createDatabase("unsynced")) });
    expect(told(await checkDatabase(target), "fail")).to.include("expected a database with `fsync = on`, got `off`");
  });

  it("fails for a database that is not there, in the command as well, and names the variable", async () => {
    const away = url.replace("/gateway?", "/nowhere?");
    const [store, reports] = await foundOf(away);
    expect(store).to.match(/^fail .*3D000: database "nowhere" does not exist/);
    expect(reports).to.match(
      /^fail the database of REPORT_URL cannot be used \(3D000: database "nowhere" does not exist\)/,
    );
    await appendFile(world.configPath, "\nreports: { url_env: REPORT_URL }\n");
    const { code, stdout } = await runCommand(["doctor", "--config", world.configPath], { REPORT_URL: away });
    expect(code).to.equal(1);
    expect(stdout).to.match(
      /^fail {2}reports +the database of REPORT_URL .*; start PostgreSQL, and check what REPORT_URL holds$/m,
    );
  });
});
