import { expect } from "chai";
import { configDigest } from "../../../core/config/digest.ts";
import { noticeTypes } from "../../../core/config/policy-schema.ts";
import { faultsOf, hashA, loadText } from "./fixture.ts";

const secret = `whsec_${Buffer.alloc(24, 7).toString("base64")}`;
const other = `whsec_${Buffer.alloc(64, 9).toString("base64")}`;
const env = { SECRET: secret, OTHER: other };
const keys = `keys: [{id: a, tenant: acme, role: admin, key_hash: '${hashA}'}]\n`;
const entry = "name: ops, tenant: acme, url: 'https://a.example/h', secrets_env: [SECRET]";

function text(...webhooks: readonly string[]): string {
  return `data_dir: /data\n${keys}approvals: {webhooks: [${webhooks.map((webhook) => `{${webhook}}`).join(", ")}]}\n`;
}

/** The faults without file and place. */
async function textsOf(content: string, variables: NodeJS.ProcessEnv = env): Promise<string[]> {
  return (await faultsOf(content, variables)).map((fault) => fault.replace(/^gateway\.yaml:\d+:\d+: /, ""));
}

describe("approvals.webhooks", () => {
  it("tells all events unless the file names some, and reads its secrets from the environment", async () => {
    const { approvals } = await loadText(text(entry), env);
    expect(approvals.webhooks).to.deep.equal([
      {
        name: "ops",
        tenant: "acme",
        url: "https://a.example/h",
        secrets: [secret],
        secretVariables: ["SECRET"],
        events: noticeTypes,
        timeoutMs: 10_000,
        maxAttempts: 20,
      },
    ]);
  });

  it("takes several secrets, in their order, and some events", async () => {
    const changed = entry.replace(
      "[SECRET]",
      "[OTHER, SECRET], events: [approval.expired], timeout_ms: 100, max_attempts: 1",
    );
    const [webhook] = (await loadText(text(changed), env)).approvals.webhooks;
    expect(webhook).to.deep.include({
      secrets: [other, secret],
      events: ["approval.expired"],
      timeoutMs: 100,
      maxAttempts: 1,
    });
  });

  for (const [what, value] of [
    ["is missing", undefined],
    ["is empty", ""],
    ["lacks its prefix", Buffer.alloc(32, 1).toString("base64")],
    ["is short", `whsec_${Buffer.alloc(23, 1).toString("base64")}`],
    ["is long", `whsec_${Buffer.alloc(65, 1).toString("base64")}`],
    ["is not base64", `whsec_${"!".repeat(32)}`],
    ["is base64 of another decoder", `whsec_${"A".repeat(33)}B==`],
    ["lacks its padding", other.replace(/=+$/, "")],
    ["ends with a line break", `${secret}\n`],
  ] as const) {
    it(`refuses a secret that ${what}, and tells the variable only`, async () => {
      const faults = await textsOf(text(entry), value === undefined ? {} : { SECRET: value });
      const got = value === undefined ? "no such variable" : value === "" ? "an empty one" : "an unfit value";
      expect(faults).to.deep.equal([
        "approvals.webhooks[0].secrets_env[0]: expected environment variable `SECRET` to hold " +
          `\`whsec_\` and the base64 of 24 to 64 bytes, got ${got}`,
      ]);
    });
  }

  for (const [what, webhooks, fault] of [
    ["without secrets", [entry.replace("[SECRET]", "[]")], "secrets_env: expected at least one entry"],
    ["with one variable twice", [entry.replace("[SECRET]", "[SECRET, SECRET]")], "expected each variable once"],
    ["of a tenant without keys", [entry.replace("acme", "amce")], "tenant: expected the tenant of a key, got `amce`"],
    ["with the name of another", [entry, entry], "approvals.webhooks[1].name: expected a name of its own"],
    ["that is told of nothing", [`${entry}, events: []`], "events: expected at least one entry"],
    [
      "that is told what there is not",
      [`${entry}, events: [approval.consumed]`],
      "events[0]: expected `approval.pending`",
    ],
    ["at a plain address elsewhere", [entry.replace("https", "http")], "url: expected an https: URL"],
    ["with credentials in its address", [entry.replace("//a", "//u:p@a")], "url: expected an https: URL"],
  ] as const) {
    it(`refuses one ${what}`, async () => {
      const faults = await textsOf(text(...webhooks));
      expect(faults, faults.join("\n")).to.have.length(1);
      expect(faults[0]).to.include(fault);
    });
  }

  it("counts in the digest by its variables, not by its secrets", async () => {
    const digest = async (content: string, variables: NodeJS.ProcessEnv = env): Promise<string> =>
      configDigest(await loadText(content, variables));
    const one = await digest(text(entry));
    expect(await digest(text(entry), { SECRET: other })).to.equal(one);
    expect(await digest(text(entry.replace("SECRET", "OTHER")))).to.not.equal(one);
    expect(await digest(text(`${entry}, timeout_ms: 1000`))).to.not.equal(one);
    expect(await digest(text())).to.not.equal(one);
  });
});
