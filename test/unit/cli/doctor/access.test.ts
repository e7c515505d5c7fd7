import { randomBytes } from "node:crypto";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { checkExposure, checkKeys } from "../../../../core/cli/doctor/check.ts";
import { checkSignIn } from "../../../../core/cli/doctor/console.ts";
import { checkPermissions } from "../../../../core/cli/doctor/permission.ts";
import { generateKey } from "../../../../core/identity/key-ring.ts";
import { type DoctorWorld, openDoctorWorld, statuses, told } from "./world.ts";

describe("doctor: who gets in", () => {
  let world: DoctorWorld;

  before(async () => {
    world = await openDoctorWorld();
  });

  after(() => world.remove());

  describe("exposure", () => {
    it("finds ports that others reach, the admin port on every network above all", async () => {
      const { config } = await world.target();
      const exposed = async (changes: object): Promise<readonly string[]> =>
        statuses(await checkExposure(await world.target({ listen: { ...config.listen, ...changes } })));
      expect(await exposed({})).to.deep.equal(["ok"]);
      expect(await exposed({ host: "0.0.0.0" })).to.deep.equal(["warn"]);
      expect(await exposed({ adminHost: "10.0.0.7" })).to.deep.equal(["warn"]);
      expect(await exposed({ host: "::", adminHost: "::" })).to.deep.equal(["warn", "fail"]);
    });
  });

  describe("console", () => {
    it("finds one that nobody elsewhere can sign in to, and one that the network reads", async () => {
      const { config } = await world.target();
      const found = async (console: object, listen: object = {}): ReturnType<typeof checkSignIn> =>
        checkSignIn(
          await world.target({
            console: { ...config.console, ...console },
            listen: { ...config.listen, ...listen },
          }),
        );
      expect(told(await found({}), "ok")).to.include("`gateway console` opens it");
      expect(told(await found({}, { adminHost: "10.0.0.7" }), "warn")).to.include("set `console.public_url`");
      expect(told(await found({ publicUrl: "https://console.example" }), "ok")).to.include("a proxy that adds");
      expect(statuses(await found({ publicUrl: "http://localhost:8082" }))).to.deep.equal(["ok"]);
      expect(told(await found({ publicUrl: "http://console.example" }), "warn")).to.include("in plain HTTP");
    });
  });

  describe("keys", () => {
    it("finds that there are none, but in local mode, which makes some", async () => {
      expect(told(await checkKeys(await world.target({ keys: [] })), "fail")).to.include("gateway keys new");
      expect(statuses(await checkKeys(await world.target({ keys: [], source: null })))).to.deep.equal(["ok"]);
    });

    it("finds a tenant in which nobody can review, until somebody can", async () => {
      const { config } = await world.target();
      const lone = { id: "lone", tenant: "lonely", role: "viewer" as const, ...generateKey(randomBytes) };
      const found = told(await checkKeys(await world.target({ keys: [...config.keys, lone] })), "warn");
      expect(found).to.include("tenant `lonely`").and.include("--role operator").and.not.include("`acme`");
      const mended = [...config.keys, lone, { ...lone, id: "reviewer", role: "operator" as const }];
      expect(statuses(await checkKeys(await world.target({ keys: mended })))).to.deep.equal(["ok"]);
    });

    it("finds a GATEWAY_API_KEY that is not of this gateway, and tells nothing of it", async () => {
      const { key, keyHash } = generateKey(randomBytes);
      const { config } = await world.target();
      const found = told(await checkKeys(await world.target({}, { GATEWAY_API_KEY: key })), "warn");
      expect(found).to.include("GATEWAY_API_KEY").and.not.include(key);
      const keys = [...config.keys, { id: "mine", tenant: "acme", role: "admin" as const, keyHash }];
      expect(statuses(await checkKeys(await world.target({ keys }, { GATEWAY_API_KEY: key })))).to.deep.equal(["ok"]);
    });

    it("finds that MCP needs none", async () => {
      const { config } = await world.target();
      const mcpGateway = { ...config.mcpGateway, requireAuth: false, anonymousTenant: "acme" };
      expect(told(await checkKeys(await world.target({ mcpGateway })), "warn")).to.include("require_auth");
    });
  });

  describe("permissions", () => {
    const mistakes: readonly (readonly [name: string, mode: number, right: number])[] = [
      ["data", 0o750, 0o700],
      ["data/keys/tickets/one.pem", 0o604, 0o600],
      ["admin.key", 0o644, 0o600],
      ["signing-key.pem", 0o640, 0o600],
      ["servers.env", 0o644, 0o600],
      ["gateway.yaml", 0o666, 0o600],
      ["trust.yaml", 0o602, 0o600],
      ["policy-packs/baseline", 0o777, 0o755],
    ];

    before(async () => {
      await mkdir(join(world.dataDir, "keys", "tickets"), { recursive: true, mode: 0o700 });
      await writeFile(join(world.dataDir, "keys", "tickets", "one.pem"), "", { mode: 0o600 });
      await writeFile(join(world.folder, "servers.env"), "", { mode: 0o600 });
    });

    for (const [name, wrong, right] of mistakes) {
      it(`finds \`${name}\` with mode ${wrong.toString(8)}, until it is ${right.toString(8)}`, async () => {
        const path = join(world.folder, name);
        await chmod(path, wrong);
        const found = told(await checkPermissions(await world.target()), "fail");
        expect(found.split("\n")).to.have.lengthOf(1);
        expect(found).to.include(`\`${path}\``).and.include("chmod");
        await chmod(path, right);
        expect(statuses(await checkPermissions(await world.target()))).to.deep.equal(["ok"]);
      });
    }
  });
});
