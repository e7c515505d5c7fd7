/**
 * Lets a gateway of an earlier day make a data folder, and keeps it for the tests of upgrades:
 * `node dist/test/support/write-stored-state.js <era> <checkout of that day, installed and built>`.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startGateway } from "./gateway.ts";
import { allowEverything } from "./pack.ts";
import { runProgram } from "./program.ts";
import { startRecorder } from "./recorder.ts";
import { StoredPast } from "./stored-past.ts";
import {
  type Era,
  eras,
  isSince,
  people,
  roleOf,
  storedKeyHash,
  storedSecret,
  storedStatePath,
} from "./stored-state.ts";
import { answer, WebhookReceiver } from "./webhook-receiver.ts";

const modelGateway = "model_gateway: { routes: [{ model: mock, providers: [{ name: mock }] }] }";

const [era, checkout] = process.argv.slice(2);
if (!isEra(era) || checkout === undefined) throw new Error(`expected one of ${eras.join(", ")}, and a folder`);
await write(era, checkout);

async function write(era: Era, checkout: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), `write-${era}-`));
  const [recorder, hook] = await Promise.all([startRecorder(), WebhookReceiver.start()]);
  // Denials are refused for good, everything else for now.
  hook.respond = (response, { notice }) => answer(response, notice.type === "approval.denied" ? 400 : 503);
  try {
    const program = join(checkout, "dist", "core", "cli", "main.js");
    const gateway = await startGateway({
      folder,
      program,
      config: configOf(era, recorder.url, hook.url),
      files: rulesOf(era),
      env: { HOOK: storedSecret },
    });
    const known = await new StoredPast(era, gateway, hook).make().finally(() => gateway.stop());
    await writeFile(join(folder, "known.json"), JSON.stringify(known, null, 2));
    await pack(folder, storedStatePath(era));
  } finally {
    await recorder.stop();
    hook.stop();
    await rm(folder, { recursive: true });
  }
}

function configOf(era: Era, url: string, hookUrl: string): string {
  const keys = people.map(
    (id) => `  - { id: ${id}, tenant: acme, role: ${roleOf[id]}, key_hash: "${storedKeyHash(id)}" }`,
  );
  const webhook = `{ name: pager, tenant: acme, url: "${hookUrl}", secrets_env: [HOOK] }`;
  const approvals = `approvals: { allow_break_glass: true, webhooks: [${webhook}] }`;
  const untrusted = isSince(era, "watched") ? ", untrusted: [echo]" : "";
  return `
listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }
keys:
${keys.join("\n")}
upstreams: [{ name: recorder, transport: http, url: "${url}", protocol: legacy, connection: shared${untrusted} }]
policy: { packs: [{ path: packs/open }] }
${isSince(era, "reviewed") ? approvals : ""}
${isSince(era, "metered") ? modelGateway : ""}
`;
}

function rulesOf(era: Era): Readonly<Record<string, string>> {
  const ticket = `  - id: open.ticket
    title: Some echoes need a ticket
    decision: block
    severity: low
    risk: 7
    match: { phase: input, tool: echo }
    when: has(args.ticket)
    require_ticket: true
    message: these need a ticket
`;
  const rules = `rules:
  - id: open.review
    title: Some echoes are reviewed
    decision: review
    severity: low
    risk: 5
    match: { phase: input, tool: echo }
    when: has(args.review)
    message: somebody has to look at it
  - id: open.block
    title: Some echoes are blocked
    decision: block
    severity: low
    risk: 3
    match: { phase: input, tool: echo }
    when: has(args.block)
    message: nobody may do that
${isSince(era, "watched") ? ticket : ""}`;
  return { ...allowEverything("packs/open"), "packs/open/rules/some.yaml": rules };
}

/** Without what the database keeps for itself: its lock and its own log, which names folders of this machine. */
async function pack(folder: string, path: string): Promise<void> {
  const leftOut = ["LOCK", "LOG", "LOG.old"].map((name) => `--exclude=${name}`);
  const owner = ["--owner=0", "--group=0", "--numeric-owner", "--sort=name"];
  const parts = ["data", "packs", "gateway.yaml", "known.json"];
  const { code, stderr } = await runProgram("tar", [...leftOut, ...owner, "-czf", path, "-C", folder, ...parts]);
  if (code !== 0) throw new Error(`tar: ${stderr}`);
}

function isEra(text: string | undefined): text is Era {
  return eras.some((era) => era === text);
}
