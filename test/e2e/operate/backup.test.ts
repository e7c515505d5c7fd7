import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { canaryOf, formsOf } from "../../support/canary.ts";
import { runCommand } from "../../support/command-host.ts";
import { HeldSite, overHttp, type Person, toldOf } from "../../support/held-site.ts";
import { rejection } from "../../support/ledger-world.ts";
import { type Recorder, startRecorder } from "../../support/recorder.ts";
import { until } from "../../support/webhook-receiver.ts";
import type { Finished } from "../../unit/cli/run.ts";

describe("backups", () => {
  let root: string;
  let upstream: Recorder;
  let site: HeldSite;

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "backup-e2e-"));
    upstream = await startRecorder();
    site = new HeldSite({
      upstreams: [overHttp("recorder", upstream.url)],
      more: "resilience: { enabled: true, tenant: acme, backup_dir: kept, keep: 2 }",
      folder: join(root, "first"),
    });
    for (const name of ["first", "second"]) await mkdir(join(root, name));
  });

  afterEach(async () => {
    await upstream.stop();
    await rm(root, { recursive: true });
  });

  function backup(person: Person, ...args: string[]): Promise<Finished> {
    const { adminUrl } = site.gateway;
    return runCommand(["backup", ...args], { GATEWAY_API_KEY: site.key(person), GATEWAY_ADMIN_URL: adminUrl });
  }

  /** The path of a new backup. */
  async function make(): Promise<string> {
    const { code, stdout, stderr } = await backup("adam", "create");
    expect([code, stderr]).to.deep.equal([0, ""]);
    return join(root, "first", "kept", stdout.trim());
  }

  function ask(method: "GET" | "POST", path: string, person: Person): Promise<Response> {
    const url = `${site.gateway.adminUrl}/admin/v1/resilience/${path}`;
    return fetch(url, { method, headers: { "x-api-key": site.key(person), "content-type": "application/json" } });
  }

  /** Restores a backup into the data folder of another gateway, whose keys were kept apart. */
  async function restoreElsewhere(file: string): Promise<string> {
    const data = join(root, "second", "data");
    await cp(join(root, "first", "data", "keys"), join(data, "keys"), { recursive: true });
    const { code, stderr } = await runCommand(["restore", file, "--data", data, "--by", "ops"]);
    expect([code, stderr]).to.deep.equal([0, ""]);
    return data;
  }

  it("are for people of one tenant: the one that is named, and nobody where keys belong to several [S4]", async () => {
    const answers = async (tenant: string): Promise<readonly (readonly [number, string | undefined])[]> => {
      await site.start({ more: `resilience: { enabled: true${tenant}, backup_dir: kept }` });
      const asked = [
        await ask("GET", "backups", "adam"),
        await ask("GET", "backups", "foreign"),
        await ask("POST", "backup", "foreign"),
      ];
      const told = await Promise.all(
        asked.map(async (answer) => [answer.status, ((await answer.json()) as { detail?: string }).detail] as const),
      );
      await site.stop();
      return told;
    };
    const others = "this role may not do that: expected a key of the tenant that `resilience.tenant` names";
    const nobodys =
      "this role may not do that: a backup contains every tenant: name the tenant that makes them in `resilience.tenant` and restart";
    expect(await answers(", tenant: acme")).to.deep.equal([
      [200, undefined],
      [403, others],
      [403, others],
    ]);
    expect(await readdir(join(root, "first", "kept"))).to.deep.equal([]);
    expect(await answers(", tenant: other")).to.deep.equal([
      [403, others],
      [200, undefined],
      [202, undefined],
    ]);
    expect(await answers("")).to.deep.equal([
      [403, nobodys],
      [403, nobodys],
      [403, nobodys],
    ]);
  });

  it("revive no approval: what waited or was approved has ended, what was used stays used [S70, R9-6]", async () => {
    await site.start();
    const pending = await site.hold("echo", { at: "pending" });
    const approved = await site.holdAndApprove("echo", { at: "approved" });
    const used = await site.holdAndApprove("echo", { at: "used" });
    const usedSince = await site.holdAndApprove("echo", { at: "used since" });
    await site.call("echo", { at: "used" });
    const file = await make();
    await site.call("echo", { at: "used since" });
    const arrived = async (): Promise<number> => (await upstream.calls()).length;
    expect(await arrived()).to.equal(2);
    await site.kill9();
    await restoreElsewhere(file);
    await site.start({ folder: join(root, "second") });
    for (const id of [pending, approved, usedSince]) {
      expect(await site.show(id)).to.include({ state: "expired", reason: "restored" });
      expect((await site.review(id, "approve")).status).to.equal(409);
    }
    expect(await site.show(used)).to.include({ state: "consumed" });
    for (const at of ["pending", "approved", "used", "used since"]) {
      expect(toldOf(await site.call("echo", { at })).approval?.state, at).to.equal("pending");
    }
    expect(await arrived()).to.equal(2);
    await site.stop();
  });

  it("are listed, the latest first, as many as are kept [R2.8-3, R4.2-8]", async () => {
    await site.start();
    const names: string[] = [];
    for (let at = 0; at < 3; at++) names.unshift((await make()).split("/").at(-1) ?? "");
    const kept = names.slice(0, 2);
    const { code, stdout } = await backup("rita", "list", "--json");
    const items = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { name: string; state: string; bytes: number });
    expect([code, items.map(({ name, state }) => [name, state])]).to.deep.equal([
      0,
      kept.map((name) => [name, "complete"]),
    ]);
    for (const { name, bytes } of items) expect((await stat(join(root, "first", "kept", name))).size).to.equal(bytes);
    await until(async () => (await readdir(join(root, "first", "kept"))).length === 2, "the oldest to go");
    const page = (await (await ask("GET", "backups?limit=1", "adam")).json()) as { items: unknown[]; next: string };
    expect([page.items.length, page.next]).to.deep.equal([1, kept[1]]);
    await site.stop();
  });

  it("are made by admins alone, and listed by whoever operates [R4.2-7, R4.2-8]", async () => {
    await site.start();
    const answers = [];
    for (const person of ["adam", "rita", "vera"] as const) {
      answers.push([(await ask("POST", "backup", person)).status, (await ask("GET", "backups", person)).status]);
    }
    expect(answers).to.deep.equal([
      [202, 200],
      [403, 200],
      [403, 403],
    ]);
    await site.stop();
  });

  it("are not there where they are not enabled, and the answer says why [R2.8-2, R4.2-7, R4.2-8]", async () => {
    await site.start({ more: "" });
    for (const [method, path] of [
      ["POST", "backup"],
      ["GET", "backups"],
    ] as const) {
      const response = await ask(method, path, "adam");
      const { code, detail } = (await response.json()) as { code: string; detail: string };
      expect([response.status, code, detail]).to.deep.equal([
        404,
        "NOT_FOUND",
        "not found: `resilience.enabled` is false: this gateway makes no backups",
      ]);
    }
    expect(await readdir(join(root, "first"))).to.not.include("backups");
    await site.stop();
  });

  it("keep a gateway from starting where their folder is a link, or leads into the data folder [S70]", async () => {
    await site.start();
    await site.stop();
    await symlink(root, join(root, "first", "way"));
    for (const [folder, said] of [
      ["way", "is a symbolic link; name the folder itself"],
      ["way/first/data/backups", "lies in `data_dir`: what takes one takes both"],
      ["../first/data", "lies in `data_dir`: what takes one takes both"],
    ] as const) {
      const error = await rejection(site.start({ more: `resilience: { enabled: true, backup_dir: ${folder} }` }));
      expect(error.message).to.include(said);
    }
  });

  it("hold no secret: no argument, answer or key in the clear, and nothing of the keys folder [S66]", async () => {
    await site.start({
      more: "resilience: { enabled: true, tenant: acme, backup_dir: kept }\nevidence: { store_values: true }",
    });
    const canary = canaryOf("backup");
    await site.call("deep", { [`name-${canary}`]: canary });
    await site.holdAndApprove("echo", { secret: canary });
    const text = await readFile(await make(), "utf8");
    expect(text, "the private fields are in it, sealed").to.include("{disclosure}/acme/").and.to.include("acme/held/");
    const keys = join(root, "first", "data", "keys");
    const secrets = await Promise.all((await readdir(keys)).map((name) => readFile(join(keys, name), "utf8")));
    const lines = secrets
      .flatMap((secret) => secret.split(/\s/))
      .filter((line) => line.length > 40 && !line.startsWith("-"));
    expect(lines.length).to.be.above(3);
    for (const secret of [...formsOf(canary), ...lines, site.key("agent"), site.key("adam")]) {
      expect(text.includes(secret), secret).to.equal(false);
    }
    await site.stop();
  });

  it("made before a witness was sent anything are what that witness has seen when it is asked later [S70]", async () => {
    const notes = join(root, "notes");
    await site.start({
      more: `resilience: { enabled: true, tenant: acme, backup_dir: kept }\nevidence: { witnesses: [{ name: w, type: file, path: ${notes}, interval_ms: 600000 }] }`,
    });
    await site.call("deep", { at: 1 });
    const file = await make();
    await site.stop(); // which tells the witness
    const { code, stdout } = await runCommand(["backup", "verify", file, "--witness", notes]);
    const [, ...chains] = stdout.trimEnd().split("\n");
    expect([code, chains]).to.deep.equal([0, ["acme: witnessed, 6 records", "other: witnessed, 3 records"]]);
  });

  it("that were changed, or are older than a witness has seen, are refused with the reason, and nothing is written [S70]", async () => {
    const notes = join(root, "notes");
    await site.start({
      more: `resilience: { enabled: true, tenant: acme, backup_dir: kept }\nevidence: { witnesses: [{ name: w, type: file, path: ${notes}, interval_ms: 1000 }] }`,
    });
    await site.call("deep", { at: 1 });
    const file = await make();
    await site.call("deep", { at: 2 });
    await site.stop(); // which tells the witness
    const data = join(root, "second", "data");
    await cp(join(root, "first", "data", "keys"), join(data, "keys"), { recursive: true });
    const args = ["restore", file, "--data", data, "--witness", notes];
    const older = await runCommand(args);
    expect([older.code, older.stderr]).to.have.property("0", 1);
    expect(older.stderr).to.match(
      /^gateway: backup refused: chain of tenant `acme`: witness `.*` has seen \d+ records; /,
    );
    const whole = await readFile(file, "utf8");
    await writeFile(file, whole.replace("backup.create", "backup.Create"));
    const changed = await runCommand(args);
    expect([changed.code, changed.stderr]).to.deep.equal([
      1,
      "gateway: backup refused: its seal does not fit: a line, or the seal, was changed, added or taken out\n",
    ]);
    expect(await readdir(data)).to.deep.equal(["keys"]);
  });
});
