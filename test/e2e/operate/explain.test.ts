import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import type { ExplainedExpression } from "../../../core/action/explanation.ts";
import type { Explanation } from "../../../core/explain/explained-decision.ts";
import { canaryOf } from "../../support/canary.ts";
import { folderOf } from "../../support/first-party.ts";
import { HeldSite, heldId, type Person, textOf } from "../../support/held-site.ts";
import { until } from "../../support/webhook-receiver.ts";
import { send } from "../../support/wire.ts";
import { runGateway } from "../../unit/cli/run.ts";

const demoServer = fileURLToPath(new URL("../../../core/upstream/demo/server.js", import.meta.url));
const rules = `rules:
  - id: open.system
    title: Nothing is written about the system
    decision: block
    match: { phase: input, tool: write_note }
    when: >-
      has(args.paths) &&
      (args.paths.exists(path, path.startsWith("/etc/") && !path.endsWith(".md")) || size(args.paths) > 5)
    message: a path of the system
  - id: open.held
    title: What asks for it is held
    decision: review
    match: { phase: input, tool: write_note }
    when: has(args.please_review)
  - id: open.trial
    title: What asks for it twice would be blocked
    decision: block
    mode: shadow
    match: { phase: input, tool: write_note }
    when: has(args.please_review) && args.please_review > 1.0
  - id: open.token
    title: Tokens are not written down
    decision: block
    match: { phase: input, tool: write_note }
    when: has(args.token) && args.token.lowerAscii().contains("akia")
    message: "a token: {{ args.token }}"
`;
const printed = `pack open 1.0.0: block, which decided
  open.all decides allow  rules/all.yaml:2
    message: allowed
  open.system decides block  rules/further.yaml:2
    when
      has(args.paths) && (args.paths.exists(path, path.startsWith("/etc/") && !path.endsWith(".md")) || size(args.paths) > 5)  → true
        has(args.paths)  → true
        args.paths.exists(path, path.startsWith("/etc/") && !path.endsWith(".md")) || size(args.paths) > 5  → true
          args.paths.exists(path, path.startsWith("/etc/") && !path.endsWith(".md"))  → true
            args.paths  → ["/tmp/a", "/etc/shadow"]
            path  → "/etc/shadow"
              path.startsWith("/etc/") && !path.endsWith(".md")  → true
                path.startsWith("/etc/")  → true
                  path  → "/etc/shadow"
                !path.endsWith(".md")  → true
                  path.endsWith(".md")  → false
                    path  → "/etc/shadow"
          size(args.paths) > 5  → skipped
    message: a path of the system

nearest rules that did not decide
  open.trial would decide block [shadow]  open rules/further.yaml:15
    \`when\` is false: \`has(args.please_review)\` is false
  open.token would decide block  open rules/further.yaml:21
    \`when\` is false: \`has(args.token)\` is false
  open.held would decide review  open rules/further.yaml:10
    \`when\` is false: \`has(args.please_review)\` is false`.split("\n");
const note = { title: "plan", text: "nothing much" };

describe("why something was decided", () => {
  let folder: string;
  let site: HeldSite;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "explain-"));
    const log = join(folder, "local.jsonl");
    const local = `{ name: local, transport: stdio, command: "${process.execPath}", args: ["${demoServer}"], env: { DEMO_LOG: "${log}" }, connection: shared }`;
    const plugin = `{ path: "${folderOf("secret-egress")}", phases: [input] }`;
    site = new HeldSite({ upstreams: [local], plugins: [plugin], rules, folder });
    await site.start();
  });

  after(async () => {
    await site.stop();
    await rm(folder, { recursive: true });
  });

  async function ask(id: string, person: Person = "rita"): Promise<{ status: number; body: string }> {
    return send(site.gateway.adminUrl, {
      target: `/admin/v1/decisions/${id}/explanation`,
      headers: [["x-api-key", site.key(person)]],
    });
  }

  async function explain(id: string): Promise<Explanation> {
    const { status, body } = await ask(id);
    expect(status, body).to.equal(200);
    return JSON.parse(body) as Explanation;
  }

  /** The id of the decision about a call; `whole`: whether the call was refused, and names it. */
  async function refused(args: object): Promise<string> {
    const text = textOf(await site.call("write_note", args));
    const [, id] = /Decision ([0-9a-f-]{36})/.exec(text) ?? [];
    if (id === undefined) throw new Error(`expected a refusal, got \`${text}\``);
    return id;
  }

  async function lastDecision(): Promise<{ readonly decision: string; readonly action: string }> {
    const records = await site.evidence.recordsOf(() => true);
    const last = records.findLast(({ kind }) => kind === "decision");
    return { decision: last?.evaluation?.id ?? "", action: last?.action.id ?? "" };
  }

  const cli = (...args: readonly string[]): ReturnType<typeof runGateway> =>
    runGateway(args, { GATEWAY_API_KEY: site.key("rita"), GATEWAY_ADMIN_URL: site.gateway.adminUrl });

  it("names the rule that allowed it, by the id of the decision and of the action", async () => {
    await site.call("write_note", note);
    const { decision, action } = await lastDecision();
    const told = await explain(decision);
    expect(told).to.deep.include({ decision: "allow", rules: ["open.all"], source: "memory", values: "shown" });
    expect(told.why).to.equal("`open.all` decides allow (pack open 1.0.0, rules/all.yaml:2): its `match` agrees");
    expect(await explain(action)).to.deep.equal(told);
  });

  it("tells of a rule that blocked which part of its condition did, and of which value", async () => {
    const told = await explain(await refused({ ...note, paths: ["/tmp/a", "/etc/shadow"] }));
    expect(told.decision).to.equal("block");
    const pack = told.policies.find(({ policy }) => policy.name === "open");
    expect(pack).to.include({ verdict: "block", decided: true, standing: "same" });
    const rule = pack?.rules.find((each) => each.rule === "open.system");
    expect(rule).to.include({ outcome: "held", file: "rules/further.yaml", line: 2 });
    const flat = flatten(rule?.conditions[0]?.expression);
    expect(flat).to.deep.include.members([
      ["has(args.paths)", "true"],
      ["path", '"/etc/shadow"'],
      ['path.startsWith("/etc/")', "true"],
      ['path.endsWith(".md")', "false"],
      ["size(args.paths) > 5", null],
    ]);
  });

  it("tells the nearest rule that did not decide, where it ended, and on which value", async () => {
    const told = await explain(await refused({ ...note, paths: ["/etc/shadow"], please_review: 1 }));
    expect(told.rules).to.deep.equal(["open.system"]);
    const [nearest] = told.near;
    expect(nearest).to.include({ rule: "open.trial", outcome: "when", mode: "shadow", policy: "open" });
    expect(nearest?.why).to.equal("`when` is false: `args.please_review > 1.0` is false (`args.please_review` is 1)");
  });

  it("tells of a call that is held what a rule in shadow mode would have made of it", async () => {
    const { decision } = await site.call("write_note", { ...note, please_review: 2 }).then(lastDecision);
    const told = await explain(decision);
    expect(told).to.deep.include({ decision: "review", rules: ["open.held"] });
    const pack = told.policies.find(({ policy }) => policy.name === "open");
    expect(pack?.rules.map(({ rule, mode, outcome }) => [rule, mode, outcome])).to.deep.equal([
      ["open.all", "enforce", "held"],
      ["open.held", "enforce", "held"],
      ["open.trial", "shadow", "held"],
    ]);
  });

  const secret = "AKIAIOSFODNN7EXAMPLF";

  it("tells of a plugin what it found and where, and shows no secret that it points at", async () => {
    const canary = canaryOf("explain");
    const id = await refused({ ...note, text: `the key is ${secret} ${canary}`, token: secret });
    const { body } = await ask(id);
    const told = JSON.parse(body) as Explanation;
    const plugin = told.policies.find(({ policy }) => policy.kind === "plugin");
    expect(plugin).to.include({ verdict: "block", decided: true });
    expect(plugin?.findings.map(({ rule, pointer }) => [rule, pointer])).to.deep.include.members([
      ["secret-egress.aws-access-key", "/arguments/token"],
    ]);
    expect(told).to.deep.include({ values: "redacted" });
    for (const hidden of [secret, secret.toLowerCase(), canary, secret.slice(0, 8)])
      expect(body).to.not.include(hidden);
    const pack = told.policies.find(({ policy }) => policy.name === "open");
    const token = pack?.rules.find(({ rule }) => rule === "open.token");
    expect(flatten(token?.conditions[0]?.expression)).to.deep.include.members([
      ['args.token.lowerAscii().contains("akia")', "true"],
      ["args.token.lowerAscii()", "[redacted]"],
    ]);
    expect(pack?.findings.find(({ rule }) => rule === "open.token")?.message).to.equal(null);
    expect((await cli("explain", id)).stdout).to.not.include(secret.slice(0, 8));
  });

  it("says that a stopped session is stopped", async () => {
    const { session } = (await explain((await lastDecision()).decision)).action;
    const headers = [
      ["x-api-key", site.key("rita")],
      ["content-type", "application/json"],
    ] as const;
    const order = (verb: string, body: object): ReturnType<typeof send> =>
      send(site.gateway.adminUrl, {
        method: "POST",
        target: `/admin/v1/sessions/${session}/${verb}`,
        headers,
        body: JSON.stringify(body),
      });
    expect((await order("kill", {})).status).to.equal(200);
    const told = await explain(await refused(note));
    expect((await order("release", { reason: "seen" })).status).to.equal(200);
    expect(told.rules).to.deep.equal(["session.killed"]);
    expect(told.why).to.equal("`session.killed` decides block (session kill-switch 1)");
    expect(told.policies.find(({ policy }) => policy.name === "open")).to.include({ verdict: "allow", decided: false });
  });

  it("is told to those who may see private fields of the tenant, on record, and to nobody else", async () => {
    const { decision } = await site.call("write_note", note).then(lastDecision);
    expect((await ask(decision, "vera")).status).to.equal(403);
    const foreign = await ask(decision, "foreign");
    const unknown = await ask("019b7600-0000-7000-8000-000000000000", "rita");
    expect([foreign.status, unknown.status]).to.deep.equal([404, 404]);
    expect(withoutId(foreign.body)).to.equal(withoutId(unknown.body));
    for (const id of ["x", "..", `${decision}0`, decision.toUpperCase()])
      expect((await ask(id)).status, id).to.equal(404);
    expect((await ask(decision, "adam")).status).to.equal(200);
  });

  it("is told of an action that is only described, by `explain`", async () => {
    const described = ["test-action", "--tool", "write_note", "--target", "local", "--arguments"];
    const told = await cli(...described, '{"paths":["/etc/passwd"]}', "--explain", "--json");
    const { explanation } = JSON.parse(told.stdout) as { explanation: Explanation };
    expect(explanation).to.deep.include({ decision: "block", source: "request", rules: ["open.system"] });
    const file = join(folder, "actions.yaml");
    await writeFile(file, 'actions:\n  - { tool: write_note, target: local, arguments: { paths: ["/etc/x"] } }\n');
    const simulated = await cli("simulate", file, "--explain");
    expect(simulated.stdout).to.include("open.system decides block  rules/further.yaml:2");
    const wrong = await send(site.gateway.adminUrl, {
      method: "POST",
      target: "/admin/v1/test-action",
      headers: [
        ["x-api-key", site.key("rita")],
        ["content-type", "application/json"],
      ],
      body: JSON.stringify({ tool: "a", target: "b", explain: "yes" }),
    });
    expect(wrong.status).to.equal(400);
  });

  it("is printed to be read", async () => {
    const id = await refused({ ...note, paths: ["/tmp/a", "/etc/shadow"] });
    const { code, stdout, stderr } = await cli("explain", id);
    expect([code, stderr]).to.deep.equal([0, ""]);
    const lines = stdout.split("\n");
    expect(lines[0]).to.equal(
      "block (risk 70): `open.system` decides block (pack open 1.0.0, rules/further.yaml:2): `when` is true",
    );
    expect(lines.slice(lines.indexOf("pack open 1.0.0: block, which decided"), -1)).to.deep.equal(printed);
    expect(await cli("explain", "none")).to.deep.include({ code: 1, stdout: "" });
  });

  it("is told of what waits for a reviewer with its values, also after a start; of the rest by its record", async () => {
    const waiting = await site.call("write_note", { ...note, please_review: 7 });
    expect(heldId(waiting)).to.match(/^apr_/);
    const held = await lastDecision();
    const blocked = await refused({ ...note, paths: ["/etc/shadow"] });
    const whole = await explain(blocked);
    await site.stop();
    await site.start();
    const told = await explain(held.decision);
    expect(told).to.deep.include({ source: "approval", values: "shown", rules: ["open.held"] });
    expect(told.policies.flatMap(({ rules: all }) => all.map(({ rule }) => rule))).to.include("open.trial");
    const left = await explain(blocked);
    expect(left).to.deep.include({ source: "evidence", values: "unavailable", rules: whole.rules, near: [] });
    expect(left.notes[0]).to.match(/^Arguments are not kept with the evidence/);
    const rule = left.policies.flatMap(({ rules: all }) => all)[0];
    expect(rule).to.include({ rule: "open.system", file: "rules/further.yaml", line: 2 });
    expect(rule?.conditions[0]?.expression).to.include({ outcome: "unavailable", value: null });
    expect(JSON.stringify(left)).to.not.include("/etc/shadow");
  });

  it("does not explain by the rules of another version, and says so", async () => {
    const id = await refused({ ...note, paths: ["/etc/shadow"] });
    expect((await explain(id)).policies.find(({ policy }) => policy.name === "open")?.rules).to.have.length.above(0);
    await writeFile(join(folder, "packs/open/rules/further.yaml"), rules.replace("> 5)", "> 6)"));
    await until(async () => (await explain(id)).notes.length > 0, "the other pack");
    const told = await explain(id);
    expect(told.rules).to.deep.equal(["open.system"]);
    expect(told.policies.find(({ policy }) => policy.name === "open")).to.deep.include({
      standing: "changed",
      rules: [],
    });
    expect(told.notes.join()).to.include("pack open 1.0.0 is loaded otherwise now");
    expect(told.near).to.deep.equal([]);
  });

  it("is told by the record alone where no values are to be kept", async () => {
    await site.stop();
    await site.start({ more: "evidence: { store_values: false }" });
    const told = await explain(await refused({ ...note, paths: ["/etc/shadow"] }));
    expect(told).to.deep.include({ source: "evidence", values: "unavailable", rules: ["open.system"] });
    await site.stop();
    await site.start({ more: 'evidence: { redact_fields: ["write_note:paths"] }' });
    const id = await refused({ ...note, paths: ["/etc/shadow"] });
    const redacted = await explain(id);
    expect(redacted).to.deep.include({ source: "memory", values: "redacted", rules: ["open.system"] });
    expect(JSON.stringify(redacted)).to.not.include("/etc/shadow");
  });
});

function withoutId(body: string): string {
  return JSON.stringify({ ...(JSON.parse(body) as object), request_id: "" });
}

/** Each part with what it came to. */
function flatten(told: ExplainedExpression | undefined): readonly (readonly [string, string | null])[] {
  return told === undefined ? [] : [[told.text, told.value], ...told.parts.flatMap(flatten)];
}
