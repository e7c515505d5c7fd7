import { createHash } from "node:crypto";
import { readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { checkData, judgeCheckpoint } from "../../../../core/cli/doctor/data-folder.ts";
import { lockHolder } from "../../../../core/cli/doctor/port.ts";
import { checkExtensions, checkTrust } from "../../../../core/cli/doctor/trust.ts";
import type { PublishedCheckpoint } from "../../../../core/evidence/witness/witness-publisher.ts";
import { runCommand } from "../../../support/command-host.ts";
import { startGateway } from "../../../support/gateway.ts";
import { type DoctorWorld, openDoctorWorld, statuses, told } from "./world.ts";

describe("doctor: what is kept and loaded", () => {
  let world: DoctorWorld;

  beforeEach(async () => {
    world = await openDoctorWorld();
  });

  afterEach(() => world.remove());

  describe("data", () => {
    it("knows a folder that is new, not there yet, none at all, or not used", async () => {
      expect(told(await checkData(await world.target()), "ok")).to.include("no evidence yet");
      const target = async (dataDir: string) => checkData(await world.target({ dataDir }));
      expect(told(await target(join(world.folder, "later")), "ok")).to.include("created at the first start");
      expect(told(await target(world.configPath), "fail")).to.include("no folder");
      expect(told(await target(join(world.configPath, "below")), "fail")).to.include("ENOTDIR");
      expect(statuses(await checkData(await world.target({ state: { enabled: false, mark: null } })))).to.deep.equal([
        "ok",
      ]);
    });

    it("asks the gateway that runs on it, and opens nothing that it holds", async () => {
      const gateway = await startMade(world);
      try {
        const holder = await lockHolder(world.dataDir);
        expect(holder).to.deep.equal({ pid: gateway.process.pid, name: "node" });
        const silent = { ...(await world.target()), holder, admin: gateway.adminUrl };
        const quiet = await checkData(silent);
        expect(told(quiet, "ok"))
          .to.include(`held by \`node\`, pid ${gateway.process.pid}`)
          .and.include("set GATEWAY_API_KEY");
        const key = (await readFile(join(world.folder, "admin.key"), "utf8")).trim();
        const ran = await runCommand(["doctor", "--config", world.configPath, "--admin", gateway.adminUrl], {
          GATEWAY_API_KEY: key,
        });
        expect(ran.stdout).to.match(
          /^ok {4}data +a signed checkpoint covers [1-9]\d* records of your tenant, the latest of 20.*Z$/m,
        );
        expect(ran.stdout + ran.stderr).to.not.include(key);
        const wrong = await runCommand(["doctor", "--config", world.configPath, "--admin", gateway.adminUrl], {
          GATEWAY_API_KEY: "x".repeat(40),
        });
        expect(wrong.stdout).to.match(/^warn {2}data +no checkpoint from the gateway at .*unknown key/m);
      } finally {
        await gateway.stop();
      }
    });

    it("finds a chain that does not end as it was promised, changes nothing, and is content once it is mended", async () => {
      await (await startMade(world)).stop();
      expect(await lockHolder(world.dataDir)).to.equal(null);
      const before = await fingerprint(world.dataDir);
      expect(told(await checkData(await world.target()), "ok")).to.include("1 chain of evidence");
      expect(await fingerprint(world.dataDir)).to.equal(before);

      const [mark, aside] = [join(world.dataDir, "high-water"), join(world.folder, "aside")];
      await rename(mark, aside);
      expect(told(await checkData(await world.target()), "fail"))
        .to.include("has no high-water mark")
        .and.include("restore");
      await rename(aside, mark);

      const keys = join(world.dataDir, "keys");
      await rename(keys, aside);
      expect(told(await checkData(await world.target()), "fail")).to.include("not in the key folder");
      await rename(aside, keys);
      expect(statuses(await checkData(await world.target()))).to.deep.equal(["ok"]);
    });

    it("reads nothing where the system does not tell whether somebody holds it", async () => {
      await (await startMade(world)).stop();
      await rm(join(world.dataDir, "high-water"));
      const blind = { ...(await world.target()), holder: undefined };
      expect(told(await checkData(blind), "ok")).to.include("was not read");
    });
  });

  it("finds a checkpoint that its key did not sign, and one of a time to come", async () => {
    const gateway = await startMade(world);
    const key = (await readFile(join(world.folder, "admin.key"), "utf8")).trim();
    const asked = await fetch(`${gateway.adminUrl}/admin/v1/evidence/checkpoint`, { headers: { "x-api-key": key } });
    const published = (await asked.json()) as PublishedCheckpoint;
    await gateway.stop();
    expect(judgeCheckpoint(published, Date.now()).status).to.equal("ok");
    expect(judgeCheckpoint(published, Date.now() - 3_600_000).text).to.include("in the future");
    const [size = "", ...lines] = published.note.split("\n").slice(1);
    const other = [published.note.split("\n")[0], Number(size) + 1, ...lines].join("\n");
    expect(judgeCheckpoint({ ...published, note: other }, Date.now()).text).to.include("is not signed by its key");
    expect(judgeCheckpoint({ ...published, keys: [] }, Date.now()).status).to.equal("fail");
    expect(judgeCheckpoint({ ...published, note: "" }, Date.now()).status).to.equal("fail");
  });

  describe("extensions", () => {
    it("finds a pack that was changed after it was signed, until it is signed again", async () => {
      const pack = join(world.folder, "policy-packs", "baseline");
      const manifest = join(pack, "pack.yaml");
      await writeFile(manifest, `${await readFile(manifest, "utf8")}# changed\n`);
      expect(told(await checkExtensions(await world.target()), "fail")).to.include("extension refused");
      await runCommand(["pack", "sign", pack, "--key", join(world.folder, "signing-key.pem")]);
      expect(statuses(await checkExtensions(await world.target()))).to.deep.equal(["ok"]);
    });

    it("finds a pack that nobody vouches for, where that is let through", async () => {
      const { config } = await world.target();
      await rm(join(world.folder, "policy-packs", "baseline", "pack.sigstore.json"));
      const lenient = { ...config.extensions, strict: false };
      const found = await checkExtensions(await world.target({ extensions: lenient }));
      expect(told(found, "warn")).to.include("baseline").and.include("without a trusted signature");
      expect(statuses(await checkExtensions(await world.target()))).to.deep.equal(["fail"]);
    });

    it("finds a rule that is wrong, a folder that is gone, and that there is nothing", async () => {
      const { config } = await world.target();
      const packs = [{ path: join(world.folder, "gone"), mode: "enforce" as const, settings: {}, shadowRules: [] }];
      const gone = await world.target({ policy: { ...config.policy, packs, plugins: [] } });
      expect(told(await checkExtensions(gone), "fail")).to.include("no such folder");
      const none = await world.target({ policy: { ...config.policy, packs: [], plugins: [] } });
      expect(told(await checkExtensions(none), "warn")).to.include("every action gets `block`");
    });
  });

  describe("trust", () => {
    const trusting = async (more: string): Promise<string> => {
      const path = join(world.folder, "trust.yaml");
      const text = await readFile(path, "utf8");
      await writeFile(path, text.replace(/\n( +)key: .*/, `$&\n$1${more}`));
      return told(await checkTrust(await world.target()), more.includes("2020") ? "fail" : "warn");
    };

    it("finds the private key that signs, until it is elsewhere", async () => {
      const key = join(world.folder, "signing-key.pem");
      expect(told(await checkTrust(await world.target()), "warn")).to.include(`\`${key}\` is the private key`);
      await rm(key);
      expect(statuses(await checkTrust(await world.target()))).to.deep.equal(["ok"]);
    });

    it("finds a signer who soon does not count", async () => {
      const soon = new Date(Date.now() + 5 * 86_400_000).toISOString().replace(/\.\d+/, "");
      expect(await trusting(`not_after: "${soon}"`))
        .to.include("signer `operator` is trusted until")
        .and.include("5 more days");
    });

    it("finds a signer who counts no longer", async () => {
      expect(await trusting('not_after: "2020-01-01T00:00:00Z"')).to.include("which is past");
    });

    it("finds a signature that ends soon, until it is made anew", async () => {
      const key = join(world.folder, "signing-key.pem");
      const pack = join(world.folder, "policy-packs", "baseline");
      const sign = async (days: number) => {
        const end = new Date(Date.now() + days * 86_400_000).toISOString().replace(/\.\d+/, "");
        await runCommand(["pack", "sign", pack, "--key", key, "--expires", end]);
        return told(await checkTrust(await world.target()), "warn");
      };
      expect(await sign(3))
        .to.include(`\`${pack}\` is signed until`)
        .and.include("3 more days");
      expect(await sign(300)).to.not.include("is signed until");
    });

    it("finds that what is unsigned is loaded", async () => {
      const { config } = await world.target();
      const lenient = { ...config.extensions, strict: false };
      expect(told(await checkTrust(await world.target({ extensions: lenient })), "warn")).to.include(
        "extensions.strict",
      );
    });
  });
});

async function startMade({ folder, configPath }: DoctorWorld) {
  return startGateway({ folder, config: await readFile(configPath, "utf8") });
}

/** Every name, time and byte of a folder. */
async function fingerprint(folder: string): Promise<string> {
  const hash = createHash("sha256");
  for (const entry of (await readdir(folder, { recursive: true })).toSorted()) {
    const { mtimeMs, ino } = await stat(join(folder, entry));
    const isFile = (await stat(join(folder, entry))).isFile();
    hash.update(`${entry} ${mtimeMs} ${ino}\n`);
    if (isFile) hash.update(await readFile(join(folder, entry)));
  }
  return hash.digest("hex");
}
