import { expect } from "chai";
import { parse } from "yaml";
import { contentDigest } from "../../../core/action/canonical-json.ts";
import { runCommand } from "../../support/command-host.ts";
import { faultsOf } from "../config/fixture.ts";

describe("gateway keys new", () => {
  it("prints a key, then an entry that the configuration takes and that does not hold the key", async () => {
    const { code, stdout, stderr } = await runCommand(["keys", "new"]);
    const [key = "", empty, ...lines] = stdout.split("\n");
    const entry = lines.join("\n");
    expect(code).to.equal(0);
    expect(key).to.match(/^agw_[A-Za-z0-9_-]{43}$/);
    expect(empty).to.equal("");
    expect(parse(entry).keys[0]).to.deep.include({ tenant: "default", role: "viewer", key_hash: contentDigest(key) });
    expect(await faultsOf(entry)).to.deep.equal([]);
    expect(entry + stderr).to.not.include(key);
  });

  it("takes id, tenant and role, and quotes what YAML would take for another type", async () => {
    const { stdout } = await runCommand(["keys", "new", "--id", "true", "--tenant", "0", "--role", "admin"]);
    const entry = stdout.slice(stdout.indexOf("keys:"));
    expect(await faultsOf(entry)).to.deep.equal([]);
    expect(parse(entry).keys[0]).to.include({ id: "true", tenant: "0", role: "admin" });
  });

  it("prints one line of JSON with --json, and nothing else anywhere", async () => {
    const { stdout, stderr } = await runCommand(["keys", "new", "--json", "--id", "ci"]);
    const { key, entry } = JSON.parse(stdout);
    expect(stderr).to.equal("");
    expect(entry).to.deep.equal({ id: "ci", tenant: "default", role: "viewer", key_hash: contentDigest(key) });
  });

  describe("when the command line cannot be understood", () => {
    const table: [string[], string][] = [
      [
        ["keys", "new", "--role", "root"],
        "error: option '--role <role>' argument 'root' is invalid. Allowed choices are admin, operator, viewer.\n",
      ],
      [
        ["keys", "new", "--id", "A b"],
        "error: option '--id <name>' argument 'A b' is invalid. expected 1 to 64 of `a-z 0-9 . _ -`, a letter or digit first\n",
      ],
      [["keys", "new", "--name", "a"], "error: unknown option '--name'\n"],
    ];
    for (const [args, stderr] of table) {
      it(`ends with 2 for ${args.join(" ")}, and makes no key`, async () => {
        const hint = "(see `gateway keys new --help`)\n";
        expect(await runCommand(args)).to.deep.equal({ code: 2, stdout: "", stderr: stderr + hint });
      });
    }
  });
});
