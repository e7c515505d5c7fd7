import { expect } from "chai";
import { configReference, trustReference } from "../../../core/config/reference.ts";
import { runCommand } from "../../support/command-host.ts";
import { withFile } from "../config/fixture.ts";

const valid = "data_dir: /data\nupstreams:\n  - {name: a, transport: stdio, command: run, env_from: [THE_TOKEN]}\n";

describe("gateway config", () => {
  describe("check <file>", () => {
    it("ends with 0 and says what it found", async () => {
      await withFile(valid, async (path) => {
        const { code, stdout, stderr } = await runCommand(["config", "check", path], { THE_TOKEN: "s3cr3t" });
        expect({ code, stderr }).to.deep.equal({ code: 0, stderr: "" });
        expect(stdout.replace(path, "FILE").replace(/[0-9a-f]{64}/, "HEX")).to.equal(
          "FILE: ok\nkeys: 0\nupstreams: 1\npacks: 0\ndigest: sha256:HEX\n",
        );
      });
    });

    it("ends with 1 and tells every fault", async () => {
      await withFile("log: {level: loud}\nlimit: 1\n", async (path) => {
        expect(await runCommand(["config", "check", path])).to.deep.equal({
          code: 1,
          stdout:
            `${path}:1:14: log.level: expected \`debug\`, \`info\`, \`warn\`, \`error\` or \`silent\`, got \`loud\`\n` +
            `${path}:2:1: limit: unknown key, did you mean \`limits\`?\n`,
          stderr: "",
        });
      });
    });

    it("names a variable that is missing from its own environment", async () => {
      await withFile(valid, async (path) => {
        const { code, stdout } = await runCommand(["config", "check", path]);
        expect(code).to.equal(1);
        expect(stdout).to.include("environment variable `THE_TOKEN`");
      });
    });

    it("prints JSON with --json, for good and for bad", async () => {
      await withFile(valid, async (path) => {
        const good = await runCommand(["config", "check", "--json", path], { THE_TOKEN: "s3cr3t" });
        expect(JSON.parse(good.stdout)).to.include({ ok: true, keys: 0, upstreams: 1, packs: 0 });
        const bad = await runCommand(["config", "check", "--json", path]);
        expect(bad.code).to.equal(1);
        expect(JSON.parse(bad.stdout)).to.deep.include({ ok: false, omitted: 0 });
        expect(JSON.parse(bad.stdout).faults[0]).to.include({ file: path, path: "upstreams[0].env_from[0]" });
      });
    });

    it("ends with 2 without a file", async () => {
      const { code, stdout, stderr } = await runCommand(["config", "check"]);
      expect({ code, stdout, stderr }).to.deep.equal({
        code: 2,
        stdout: "",
        stderr: "error: missing required argument 'file'\n(see `gateway config check --help`)\n",
      });
    });
  });

  describe("reference", () => {
    it("prints the reference", async () => {
      expect((await runCommand(["config", "reference"])).stdout).to.equal(`${configReference()}\n${trustReference()}`);
    });
  });
});
