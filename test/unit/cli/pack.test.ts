import { expect } from "chai";
import { runCommand } from "../../support/command-host.ts";
import { PackFolders, packOf } from "../../support/policy-pack.ts";

const rule = "  - { id: sample.a, title: A, decision: allow, match: { tool: a } }\n";
const failing = "cases:\n  - { name: a is blocked, envelope: { tool: a }, expect: { decision: block } }\n";
const passing = failing.replace("block }", "allow }");

describe("gateway pack", () => {
  const folders = new PackFolders();
  afterEach(() => folders.remove());

  it("lints a sound pack, and says which it is", async () => {
    const { code, stdout, stderr } = await runCommand(["pack", "lint", await folders.write(packOf(rule))]);
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: "" });
    expect(stdout).to.match(/^sample 1\.2\.3: ok, 1 rules, sha256:[0-9a-f]{64}\n$/);
  });

  it("ends with 1 and tells every fault of another", async () => {
    const folder = await folders.write(packOf("  - { id: sample.a, titel: A, decision: allow }\n"));
    expect(await runCommand(["pack", "lint", folder])).to.deep.equal({
      code: 1,
      stdout:
        `invalid policy pack: \`${folder}\`\n` +
        "rules/a.yaml:2:5: rules[0].title: expected this key, got nothing\n" +
        "rules/a.yaml:2:21: rules[0].titel: unknown key, did you mean `title`?\n",
      stderr: "",
    });
    const { code, stdout } = await runCommand(["pack", "lint", "--json", folder]);
    expect(code).to.equal(1);
    expect(JSON.parse(stdout)).to.have.property("ok", false);
    expect(JSON.parse(stdout).faults[1]).to.deep.equal({
      file: "rules/a.yaml",
      line: 2,
      column: 21,
      path: "rules[0].titel",
      message: "unknown key, did you mean `title`?",
    });
  });

  it("tests a pack", async () => {
    const folder = await folders.write({ ...packOf(rule), "tests/a.yaml": passing });
    expect(await runCommand(["pack", "test", folder])).to.deep.equal({
      code: 0,
      stdout: "1 cases, 0 failed\n",
      stderr: "",
    });
    const { stdout } = await runCommand(["pack", "test", "--json", folder]);
    expect(JSON.parse(stdout)).to.deep.equal({ ok: true, cases: 1, failed: [] });
  });

  it("knows rules about MCP, HTTP, shell, SQL, Git and models, and about nothing else [R1.1-2]", async () => {
    const known = ["mcp", "http", "shell", "sql", "git", "model"];
    const rules = known.map(
      (name) => `  - { id: sample.${name}, title: T, decision: allow, match: { protocol: ${name} } }`,
    );
    const cases = known.map(
      (name) =>
        `  - { name: ${name}, envelope: { protocol: ${name} }, expect: { decision: allow, rules: [sample.${name}] } }`,
    );
    const folder = await folders.write({
      ...packOf(`${rules.join("\n")}\n`),
      "tests/a.yaml": `cases:\n${cases.join("\n")}\n`,
    });
    expect((await runCommand(["pack", "test", folder])).stdout).to.equal(`${known.length} cases, 0 failed\n`);
    const other = await folders.write(packOf(rule.replace("tool: a", "protocol: smtp")));
    const { code, stdout } = await runCommand(["pack", "lint", other]);
    expect(code).to.equal(1);
    expect(stdout).to.contain("`smtp`");
  });

  it("refuses a pattern that looks around or back, which no linear engine has [S27]", async () => {
    for (const pattern of ["(?<=a)b", "(?<!a)b", "(?=a)b", "(?!a)b", "(a)\\1", "(?P<n>a)(?P=n)"]) {
      const when = `'tool.matches(r"${pattern}")'`;
      const folder = await folders.write(packOf(rule.replace("match: { tool: a }", `when: ${when}`)));
      const { code, stdout } = await runCommand(["pack", "lint", folder]);
      expect([code, stdout.includes("error parsing regexp")], pattern).to.deep.equal([1, true]);
    }
    const linear = await folders.write(packOf(rule.replace("match: { tool: a }", `when: 'tool.matches(r"(a)b")'`)));
    expect((await runCommand(["pack", "lint", linear])).code).to.equal(0);
  });

  it("ends with 1 and tells every case that failed", async () => {
    const folder = await folders.write({ ...packOf(rule), "tests/a.yaml": failing });
    expect(await runCommand(["pack", "test", folder])).to.deep.equal({
      code: 1,
      stdout: "tests/a.yaml:2:5: a is blocked: expected block, got allow\n1 cases, 1 failed\n",
      stderr: "",
    });
  });

  it("ends with 1 for a folder that cannot be read, and with 2 for a flag there is not", async () => {
    expect(await runCommand(["pack", "lint", "/nowhere"])).to.deep.equal({
      code: 1,
      stdout: "invalid extension: `/nowhere` cannot be read: no such folder\n",
      stderr: "",
    });
    expect(await runCommand(["pack", "lint", "--strict"])).to.have.property("code", 2);
  });
});
