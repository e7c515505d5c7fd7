import type { Reason } from "../../../core/evidence/bundle/reason.ts";
import { checkpointFile, readmeFile } from "../../../core/evidence/bundle/bundle-file.ts";
import { disclosureFile } from "../../../core/evidence/bundle/disclosure-check.ts";
import { manifestFile } from "../../../core/evidence/bundle/manifest.ts";
import { consistencyFile, proofFile } from "../../../core/evidence/bundle/proof-check.ts";
import { recordFile } from "../../../core/evidence/bundle/record-file.ts";
import { fieldsDigest } from "../../../core/evidence/field-commitment.ts";
import { parseCheckpoint, signCheckpoint, type SignedCheckpoint } from "../../../core/evidence/checkpoint.ts";
import { genesisDetail } from "../../../core/evidence/rotation.ts";
import {
  approvalEvent, approvalOf, approved, bundleOf, checkpointOf, contentOf, decision, type Draft, event, goodDrafts, inclusionOf, keys, noHash,
  otherSession, outcome, placeChain, session, taskOf,
} from "../../support/evidence-world.ts";
import {
  distort, editJson, editLine, editLines, editText, forgeChain, goodChain, goodWitness, meddle, misstate, present,
  type Presented, resign,
} from "../../support/forgery.ts";

/** One way to falsify evidence, and what both verifiers must say of it. */
export interface TamperCase {
  readonly name: string;
  readonly reason: Reason;
  readonly file?: string;
  readonly seq?: number;
  readonly make: () => Presented;
}

type Row = readonly [name: string, reason: Reason, place: { file?: string; seq?: number }, make: () => Presented];

const at = (seq: number): { file: string; seq: number } => ({ file: recordFile, seq });
const inFile = (file: string): { file: string } => ({ file });
const nowhere = {};

/** Replaces the draft of that number. */
const replace = (seq: number, draft: Draft) => (drafts: Draft[]): Draft[] => drafts.with(seq, draft);
const insert = (seq: number, ...added: Draft[]) => (drafts: Draft[]): Draft[] => drafts.toSpliced(seq, 0, ...added);
const remove = (seq: number, count = 1) => (drafts: Draft[]): Draft[] => drafts.toSpliced(seq, count);
const same = (drafts: Draft[]): Draft[] => drafts;
const flipHex = (hex: string): string => (hex.startsWith("0") ? "1" : "0") + hex.slice(1);

/** The operator changes one member of a record in the export, and signs the manifest anew. */
const members: readonly (readonly [string, Reason, (record: Draft) => void])[] = [
  ["action.arguments_digest", "bad_inclusion", (r) => { (r.action as Draft).arguments_digest = "sha256:00"; }],
  ["action.capability", "bad_inclusion", (r) => { (r.action as Draft).capability = "read"; }],
  ["action.fingerprint", "bad_inclusion", (r) => { (r.action as Draft).fingerprint = "sha256:00"; }],
  ["action.id", "bad_inclusion", (r) => { (r.action as Draft).id = "action-z"; }],
  ["action.target", "bad_inclusion", (r) => { (r.action as Draft).target = "Files"; }],
  ["action.task", "bad_inclusion", (r) => { (r.action as Draft).task = "t"; }],
  ["action.tool", "bad_inclusion", (r) => { (r.action as Draft).tool = "read_file"; }],
  ["chain", "foreign_chain", (r) => { r.chain = "another"; }],
  ["client.address", "bad_inclusion", (r) => { (r.client as Draft).address = "127.0.0.2"; }],
  ["config_digest", "bad_inclusion", (r) => { r.config_digest = "sha256:00"; }],
  ["effect", "bad_inclusion", (r) => { r.effect = "not_dispatched"; }],
  ["effect, to a word nobody knows", "bad_schema", (r) => { r.effect = "done"; }],
  ["evaluation.decision", "bad_inclusion", (r) => { (r.evaluation as Draft).decision = "block"; }],
  ["evaluation.rules", "bad_inclusion", (r) => { (r.evaluation as Draft).rules = []; }],
  ["evaluation, taken out", "bad_schema", (r) => { delete r.evaluation; }],
  ["id", "bad_inclusion", (r) => { r.id = "x"; }],
  ["kind", "bad_schema", (r) => { r.kind = "guess"; }],
  ["prev_hash", "bad_inclusion", (r) => { r.prev_hash = flipHex(String(r.prev_hash)); }],
  ["prev_hash, to no digest", "bad_schema", (r) => { r.prev_hash = "none"; }],
  ["principal.id", "bad_inclusion", (r) => { (r.principal as Draft).id = "principal-v1-9"; }],
  ["salt", "bad_inclusion", (r) => { r.salt = "AAAA"; }],
  ["schema", "bad_schema", (r) => { r.schema = "evidence-record-v2"; }],
  ["session.index", "bad_inclusion", (r) => { (r.session as Draft).index = 1; }],
  ["tenant", "foreign_tenant", (r) => { r.tenant = "globex"; }],
  ["time", "bad_inclusion", (r) => { r.time = "2025-03-01T09:00:03.001Z"; }],
  ["time, to no time", "bad_schema", (r) => { r.time = "yesterday"; }],
  ["writer.epoch", "bad_inclusion", (r) => { (r.writer as Draft).epoch = 2; }],
];

const memberRows: readonly Row[] = members.map(([member, reason, edit]) => [
  `record 3: \`${member}\` changed`, reason, at(3), () => resign((files) => editLine(files, 3, edit)),
]);

/** Somebody without a key changes one byte of a file. */
const fileRows: readonly Row[] = [
  readmeFile, checkpointFile, consistencyFile, disclosureFile, proofFile, recordFile,
].map((file) => [
  `a byte of ${file} changed`, "manifest_mismatch", inFile(file), () => meddle((files) => editText(files, file, (text) => text.replace("a", "b"))),
]);

const archiveRows: readonly Row[] = [
  ["trailing bytes behind the archive", "malformed", nowhere, () => distort((bundle) => Buffer.concat([bundle, Buffer.from("x")]))],
  ["an archive cut short", "malformed", nowhere, () => distort((bundle) => bundle.subarray(0, -600))],
  ["an empty archive", "malformed", nowhere, () => distort(() => Buffer.alloc(0))],
  ["an entry that is a symbolic link", "malformed", nowhere, () => distort((bundle) => Buffer.from(bundle).fill("2", 156, 157))],
  ["an entry with a path", "malformed", nowhere, () => distort((bundle) => Buffer.from(bundle).fill("/", 6, 7))],
  ["an entry twice", "malformed", nowhere, () => distort((bundle) => Buffer.concat([bundle.subarray(0, 2048), bundle]))],
  ["a file added", "unlisted_file", inFile("notes.txt"), () => meddle((files) => files.set("notes.txt", Buffer.from("hi")))],
  ["a file added and listed", "unlisted_file", inFile("notes.txt"), () => resign((files) => files.set("notes.txt", Buffer.from("hi")))],
  ["a file taken out", "missing_file", inFile(proofFile), () => meddle((files) => files.delete(proofFile))],
  ["a file taken out and no longer listed", "missing_file", inFile(consistencyFile), () => resign((files) => files.delete(consistencyFile))],
  ["no manifest", "missing_file", inFile(manifestFile), () => meddle((files) => files.delete(manifestFile))],
];

const manifestRows: readonly Row[] = [
  ["the manifest's payload type changed", "bad_schema", inFile(manifestFile), () => meddle((files) => editJson(files, manifestFile, (envelope) => { envelope.payloadType = "application/json"; }))],
  ["the manifest's payload not base64", "malformed", inFile(manifestFile), () => meddle((files) => editJson(files, manifestFile, (envelope) => { envelope.payload = `${envelope.payload} `; }))],
  ["the manifest of another tenant", "foreign_tenant", at(0), () => resign(() => undefined, (manifest) => { manifest.tenant = "globex"; })],
  ["the manifest of another session", "foreign_session", at(3), () => resign(() => undefined, (manifest) => { manifest.session = otherSession; })],
  ["the manifest's schema changed", "bad_schema", inFile(manifestFile), () => resign(() => undefined, (manifest) => { manifest.schema = "evidence-bundle-v2"; })],
  ["a manifest signed by nobody known", "unknown_key", inFile(manifestFile), () => resign(() => undefined, undefined, keys.attacker)],
  ["a manifest signed by the key before", "key_out_of_range", inFile(manifestFile), () => resign(() => undefined, undefined, keys.first)],
  ["a manifest changed after it was signed", "bad_signature", inFile(manifestFile), () => meddle((files) => editJson(files, manifestFile, (envelope) => {
    const manifest = JSON.parse(Buffer.from(String(envelope.payload), "base64").toString()) as Draft;
    envelope.payload = Buffer.from(JSON.stringify({ ...manifest, created: "2025-03-01T10:00:00.001Z" })).toString("base64");
  }))],
  ["two signatures where one is due", "bad_schema", inFile(manifestFile), () => meddle((files) => editJson(files, manifestFile, (envelope) => { envelope.signatures = [...(envelope.signatures as Draft[]), ...(envelope.signatures as Draft[])]; }))],
];

const keyRows: readonly Row[] = [
  ["a whole chain under the attacker's key", "unknown_key", at(0), () => forgeChain((drafts) => [event("genesis", genesisDetail(keys.attacker.public)), ...drafts.slice(1, 13)])],
  ["a genesis that names no key", "bad_schema", at(0), () => forgeChain(replace(0, event("genesis", {})))],
  ["a rotation without the old key's signature", "bad_rotation", at(13), () => forgeChain(same, (record, seq) => { if (seq === 13) (record.detail as Draft).proof_old = (record.detail as Draft).proof_new as string; })],
  ["a rotation without the new key's signature", "bad_rotation", at(13), () => forgeChain(same, (record, seq) => { if (seq === 13) (record.detail as Draft).proof_new = (record.detail as Draft).proof_old as string; })],
  ["a rotation copied from another place", "bad_rotation", at(13), () => forgeChain(same, (record, seq) => { if (seq === 13) record.detail = (goodChain[13]?.record.detail ?? {}) as Draft; if (seq === 12) record.salt = "x"; })],
  ["a rotation left out", "unknown_key", inFile(checkpointFile), () => misstate((content) => ({ ...content, texts: content.texts.filter((text) => !text.includes('"kind":"key"')) }))],
  ["a genesis left out", "missing_record", inFile(recordFile), () => misstate((content) => ({ ...content, texts: content.texts.slice(1) }))],
];

const noteRows: readonly Row[] = [
  ["a checkpoint signed by the attacker", "unknown_key", inFile(checkpointFile), () => misstate((content) => ({ ...content, checkpoint: checkpointOf(goodChain, 17, [keys.attacker]) }))],
  ["a checkpoint signed by the key before", "key_out_of_range", inFile(checkpointFile), () => misstate((content) => ({ ...content, checkpoint: checkpointOf(goodChain, 17, [keys.first]) }))],
  ["a checkpoint over the rotation with one signature", "bad_signature", inFile(checkpointFile), () => resign((files) => files.set(checkpointFile, Buffer.from(checkpointOf(goodChain, 14, [keys.second]))))],
  ["a checkpoint with a word changed", "bad_signature", inFile(checkpointFile), () => resign((files) => editText(files, checkpointFile, (text) => text.replace("time 2025", "time 2026")))],
  ["a checkpoint without its signature", "bad_checkpoint", inFile(checkpointFile), () => resign((files) => editText(files, checkpointFile, (text) => text.slice(0, text.indexOf("—"))))],
  ["a checkpoint with its signature twice", "bad_signature", inFile(checkpointFile), () => resign((files) => editText(files, checkpointFile, (text) => text + text.slice(text.indexOf("—"))))],
  ["a record beyond its checkpoint", "seq_gap", at(15), () => misstate((content) => ({
    ...content, checkpoint: checkpointOf(goodChain, 15), proofs: new Map(Array.from({ length: 15 }, (_, seq) => [seq, inclusionOf(goodChain, seq, 15)])),
  }))],
  ["a checkpoint whose head is another record", "head_mismatch", { seq: 16 }, () => misstate((content) => ({ ...content, checkpoint: withHead(content.checkpoint, noHash) }))],
];

const proofRows: readonly Row[] = [
  ["a proof too short", "bad_inclusion", at(3), () => resign((files) => editJson(files, proofFile, (proofs) => { proofs[3] = (proofs[3] as string[]).slice(1); }))],
  ["a proof too long", "bad_inclusion", at(3), () => resign((files) => editJson(files, proofFile, (proofs) => { proofs[3] = [...(proofs[3] as string[]), noHash]; }))],
  ["a proof in the wrong order", "bad_inclusion", at(3), () => resign((files) => editJson(files, proofFile, (proofs) => { proofs[3] = (proofs[3] as string[]).toReversed(); }))],
  ["a proof that is not hex", "bad_inclusion", at(3), () => resign((files) => editJson(files, proofFile, (proofs) => { proofs[3] = ["zz"]; }))],
  ["a proof that is no list", "bad_inclusion", at(3), () => resign((files) => editJson(files, proofFile, (proofs) => { proofs[3] = "none"; }))],
  ["a proof missing", "bad_inclusion", at(3), () => resign((files) => editJson(files, proofFile, (proofs) => { delete proofs[3]; }))],
  ["a proof too many", "bad_inclusion", inFile(proofFile), () => resign((files) => editJson(files, proofFile, (proofs) => { proofs[5] = []; }))],
  ["the proof of the head missing", "head_mismatch", { seq: 16 }, () => resign((files) => editJson(files, proofFile, (proofs) => { delete proofs[16]; }))],
  ["the tree that a witness saw, of another size", "bad_consistency", inFile(consistencyFile), () => resign((files) => editJson(files, consistencyFile, (value) => { value.first = 9; }))],
  ["the tree that a witness saw, larger than the chain", "bad_consistency", inFile(consistencyFile), () => resign((files) => editJson(files, consistencyFile, (value) => { value.first = 18; value.proof = []; }))],
  ["the tree that a witness saw, of no size", "bad_consistency", inFile(consistencyFile), () => resign((files) => editJson(files, consistencyFile, (value) => { value.first = 0; }))],
  ["the tree that a witness saw, with another root", "bad_consistency", inFile(consistencyFile), () => resign((files) => editJson(files, consistencyFile, (value) => { value.root = noHash; }))],
  ["the tree that a witness saw, without its proof", "bad_schema", inFile(consistencyFile), () => resign((files) => editJson(files, consistencyFile, (value) => { delete value.proof; }))],
  ["a checkpoint of an earlier size", "bad_inclusion", at(0), () => resign((files) => files.set(checkpointFile, Buffer.from(checkpointOf(goodChain, 16))))],
  ["the witness's proof changed", "bad_consistency", inFile(consistencyFile), () => resign((files) => editJson(files, consistencyFile, (value) => { (value.proof as string[])[0] = noHash; }))],
];

const lineRows: readonly Row[] = [
  ["records in another order", "seq_gap", at(3), () => resign((files) => editLines(files, (lines) => lines.with(3, lines[4] as string).with(4, lines[3] as string)))],
  ["a record twice", "seq_gap", at(3), () => resign((files) => editLines(files, (lines) => lines.toSpliced(3, 0, lines[3] as string)))],
  ["a decision taken out of the middle", "outcome_without_decision", at(4), () => misstate((content) => ({ ...content, texts: content.texts.toSpliced(3, 1), proofs: without(content.proofs, 3), fields: without(content.fields, 3) }))],
  ["a blocked action taken out of the middle", "session_gap", at(8), () => misstate((content) => ({ ...content, texts: content.texts.toSpliced(5, 1), proofs: without(content.proofs, 7), fields: without(content.fields, 7) }))],
  ["the last outcome cut off", "open_outcome", at(14), () => misstate((content) => ({ ...content, texts: content.texts.slice(0, -1), proofs: without(content.proofs, 15) }))],
  ["a record of another tenant put in", "foreign_tenant", at(3), () => forgeChain(same, (record, seq) => { if (seq === 3) record.tenant = "globex"; })],
  ["a record of another session put in", "foreign_session", at(5), () => misstate((content) => ({ ...content, texts: content.texts.toSpliced(5, 0, goodChain[5]?.text ?? ""), proofs: new Map([...content.proofs, [5, inclusionOf(goodChain, 5, 17)]]) }))],
  ["white space in a record", "not_canonical", inFile(recordFile), () => resign((files) => editLines(files, (lines) => lines.with(3, (lines[3] as string).replace(":", ": "))))],
  ["a key twice in a record", "not_canonical", inFile(recordFile), () => resign((files) => editLines(files, (lines) => lines.with(3, (lines[3] as string).replace('"kind":', '"kind":"decision","kind":'))))],
  ["a number spelt otherwise", "not_canonical", inFile(recordFile), () => resign((files) => editLines(files, (lines) => lines.with(3, (lines[3] as string).replace('"seq":3', '"seq":3.0'))))],
  ["members in another order", "not_canonical", inFile(recordFile), () => resign((files) => editLines(files, (lines) => lines.with(3, JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(lines[3] as string) as Draft).reverse())))))],
  ["an escape where none is due", "not_canonical", inFile(recordFile), () => resign((files) => editLines(files, (lines) => lines.with(3, (lines[3] as string).replace('"acme"', '"\\u0061cme"'))))],
  ["a lone surrogate", "not_canonical", inFile(recordFile), () => resign((files) => editLines(files, (lines) => lines.with(3, (lines[3] as string).replace('"acme"', '"\\ud800"'))))],
  ["a record that is no JSON", "malformed", inFile(recordFile), () => resign((files) => editLines(files, (lines) => lines.with(3, "{")))],
  ["a record nested too deep", "malformed", inFile(recordFile), () => resign((files) => editLines(files, (lines) => lines.with(3, "[".repeat(129) + "]".repeat(129))))],
  ...[128, 400, 900, 5_000, 200_000].map((depth): Row => [
    `a record nested ${depth} deep, and one more`, "malformed", inFile(recordFile),
    () => resign((files) => editLines(files, (lines) => lines.with(3, `{"a":${"[".repeat(depth)}${"]".repeat(depth)}}`))),
  ]),
  ["bytes that are no UTF-8", "malformed", inFile(recordFile), () => resign((files) => files.set(recordFile, Buffer.concat([files.get(recordFile) as Buffer, Buffer.from([0xff, 0x0a])])))],
  ["a last line that does not end", "malformed", inFile(recordFile), () => resign((files) => editText(files, recordFile, (text) => text.slice(0, -1)))],
];

const storyRows: readonly Row[] = [
  ["a link broken", "bad_prev_hash", at(4), () => forgeChain(same, (record, seq) => { if (seq === 4) record.prev_hash = noHash; })],
  ["a session's link broken", "bad_session_link", at(7), () => forgeChain(same, (record, seq) => { if (seq === 7) (record.session as Draft).prev_hash = noHash; })],
  ["a session's index used twice", "bad_session_link", at(7), () => forgeChain(same, (record, seq) => { if (seq === 7) (record.session as Draft).index = 1; })],
  ["a writer's epoch that falls", "stale_epoch", at(4), () => forgeChain(same, (record, seq) => { if (seq < 4) (record.writer as Draft).epoch = 2; })],
  ["a second genesis", "bad_schema", at(3), () => forgeChain(insert(3, event("genesis", genesisDetail(keys.first.public))))],
  ["a blocked action dispatched", "dispatch_without_allow", at(7), () => forgeChain(replace(7, { ...decision("b", "block"), effect: "dispatched" }))],
  ["an outcome nobody decided about", "outcome_without_decision", at(3), () => forgeChain(remove(3))],
  ["an outcome of a blocked action", "outcome_after_block", at(8), () => forgeChain(insert(8, outcome("b", "success")))],
  ["an outcome of another action", "outcome_mismatch", at(4), () => forgeChain(same, (record, seq) => { if (seq === 4) (record.action as Draft).tool = "read_file"; })],
  ["a second outcome", "second_outcome", at(5), () => forgeChain(insert(5, outcome("a", "error")))],
  ["an action decided about twice", "second_decision", at(5), () => forgeChain(insert(5, decision("a", "allow")))],
  ["an action allowed after its session was stopped", "allow_after_kill", at(4), () => forgeChain(insert(3, event("session", { session, event: "killed" })))],
];

/** The approval of the world's action `d` is given by record 10 and used by record 11. */
const breakGlass = { break_glass: { reason: "pager" }, reviewer: "principal-v1-2" };
const asTask = (changed: Draft = {}): Draft => approvalEvent("approved", "task", { action: { ...taskOf, ...changed }, scope: "task" });
const approvalRows: readonly Row[] = [
  ["an approval used for two actions", "approval_consumed_twice", at(13), () => forgeChain(insert(13, approved("d2", approvalOf("d"))))],
  ["an approval given again after its use", "approval_consumed_twice", at(14), () => forgeChain(insert(13, approvalEvent("approved", "d2"), approved("d2")))],
  ["an approval for another action", "approval_mismatch", at(11), () => forgeChain(replace(11, approved("d", approvalOf("c"))))],
  ["an approval whose fingerprint was adapted", "approval_mismatch", at(11), () => forgeChain(replace(10, approvalEvent("approved", "c")))],
  ["an approval used for an action of another fingerprint", "approval_mismatch", at(11), () => forgeChain(replace(11, approved("c2", approvalOf("d"))))],
  ["an approval nobody gave", "approval_mismatch", at(10), () => forgeChain(remove(10))],
  ["an approval that was only endorsed", "approval_mismatch", at(11), () => forgeChain(replace(10, approvalEvent("endorsed", "d")))],
  ["an approval given after its use", "approval_mismatch", at(10), () => forgeChain((drafts) => drafts.with(10, approved("d")).with(11, drafts[10] as Draft))],
  ["an approval that was denied after all", "approval_mismatch", at(12), () => forgeChain(insert(11, approvalEvent("denied", "d")))],
  ["an approval that had expired", "approval_mismatch", at(12), () => forgeChain(insert(11, approvalEvent("expired", "d", { reason: "not_used_in_time" })))],
  ["an approval given in another session", "approval_mismatch", at(11), () => forgeChain(replace(10, approvalEvent("approved", "d", { session: otherSession })))],
  ["an approval not consumed", "approval_mismatch", at(11), () => forgeChain(replace(11, approved("d", approvalOf("d", { state: "approved" }))))],
  ["an approval used where none was due", "approval_mismatch", at(11), () => forgeChain(replace(11, decision("d", "allow", { approval: approvalOf("d") })))],
  ["a held action dispatched without an approval", "dispatch_without_allow", at(11), () => forgeChain(replace(11, decision("d", "review", { effect: "dispatched" })))],
  ["a blocked action dispatched on an approval", "dispatch_without_allow", at(11), () => forgeChain(replace(11, decision("d", "block", { approval: approvalOf("d"), effect: "dispatched" })))],
  ["an approval in scope `task` used for another tool", "approval_mismatch", at(11), () => forgeChain((drafts) => drafts.with(10, asTask({ tool: "delete_file" })).with(11, approved("d", approvalOf("task"))))],
  ["an approval in scope `task` used for another task", "approval_mismatch", at(11), () => forgeChain((drafts) => drafts.with(10, asTask({ task: "t" })).with(11, approved("d", approvalOf("task"))))],
  ["an approval in scope `task` that names no action", "approval_mismatch", at(11), () => forgeChain((drafts) => drafts.with(10, approvalEvent("approved", "task", { scope: "task" })).with(11, approved("d", approvalOf("task"))))],
  ["an approval in scope `task` under the action's fingerprint", "approval_mismatch", at(11), () => forgeChain(replace(10, asTask()))],
  ["an approval in a scope nobody knows", "bad_schema", at(10), () => forgeChain(replace(10, approvalEvent("approved", "d", { scope: "all" })))],
  ["an approval's event that names no approval", "bad_schema", at(10), () => forgeChain(replace(10, approvalEvent("approved", "d", { id: 1 })))],
];

/** Chains with approvals in them that are sound, and what both verifiers remark. */
export const soundStories: readonly (readonly [string, readonly { reason: Reason; seq: number }[], () => Presented])[] = [
  ["held, endorsed, approved, used and answered", [], () => forgeChain(same)],
  ["approved in scope `task`, and used with other values", [], () => forgeChain((drafts) => drafts.with(10, asTask()).with(11, approved("d", approvalOf("task"))))],
  ["denied at first, and approved when asked for again", [], () => forgeChain((drafts) => drafts.with(9, approvalEvent("denied", "c", { id: "apr_0" })))],
  ["approved by break-glass and accounted for", [], () => forgeChain((drafts) => drafts.with(10, approvalEvent("approved", "d", breakGlass)).toSpliced(13, 0, approvalEvent("post_mortem", "d", { by: "principal-v1-2", text: "why" })))],
  ["approved by break-glass and not accounted for", [{ reason: "post_mortem_missing", seq: 10 }], () => forgeChain(replace(10, approvalEvent("approved", "d", breakGlass)))],
];

const editFields = (edit: (lists: string[][], all: Draft) => void) => () => resign((files) => editJson(files, disclosureFile, (all) => edit(Object.values(all) as unknown as string[][], all)));
const editFirst = (from: string, to: string) => editFields((lists) => {
  const list = lists.find((fields) => fields.some((text) => text.includes(from))) as string[];
  const at = list.findIndex((text) => text.includes(from));
  list[at] = (list[at] as string).replace(from, to);
});
const fieldRows: readonly Row[] = [
  ["a disclosed value changed", "bad_disclosure", inFile(disclosureFile), editFirst("/srv/a.md", "/etc/passwd")],
  ["a disclosed name changed", "bad_disclosure", inFile(disclosureFile), editFirst('"path"', '"other"')],
  ["a disclosed salt changed", "bad_disclosure", inFile(disclosureFile), editFirst('["field-v1","', '["field-v1","A')],
  ["a disclosed value spelt otherwise", "bad_disclosure", inFile(disclosureFile), editFirst('"ratio",0.1', '"ratio",0.10')],
  ["a text that is no field disclosed", "bad_disclosure", inFile(disclosureFile), editFirst('["field-v1"', '["leaf-v1"')],
  ["a commitment missing", "bad_disclosure", inFile(disclosureFile), editFields((lists) => { lists[0]?.pop(); })],
  ["a commitment added", "bad_disclosure", inFile(disclosureFile), editFields((lists) => { lists[0]?.push("f".repeat(64)); })],
  ["a commitment twice", "bad_disclosure", inFile(disclosureFile), editFields((lists) => { lists[0]?.unshift(lists[0][0] as string); })],
  ["fields in another order", "bad_disclosure", inFile(disclosureFile), editFields((lists) => { lists[0]?.reverse(); })],
  ["a record's fields missing", "bad_disclosure", inFile(disclosureFile), editFields((_, all) => { delete all[Object.keys(all)[0] as string]; })],
  ["fields of a record that is not there", "bad_disclosure", inFile(disclosureFile), editFields((_, all) => { all[fieldsDigest([])] = []; })],
  ["fields that are no list", "bad_disclosure", inFile(disclosureFile), editFields((_, all) => { all[Object.keys(all)[0] as string] = "none"; })],
  ["a key twice in the disclosures", "not_canonical", inFile(disclosureFile), () => resign((files) => editText(files, disclosureFile, (text) => text.replace(/^\{("[^"]+":)/, "{$1[],$1")))],
];

/** What only a witness can tell. */
const witnessRows: readonly Row[] = [
  ["a whole older copy, exported anew", "behind_witness", inFile("witness"), () => {
    const older = placeChain({ drafts: goodDrafts().slice(0, 13) });
    return present(bundleOf(older, contentOf(older)));
  }],
  ["a tail cut off and written anew", "forked", inFile("witness"), () => forgeChain((drafts) => [...drafts.slice(0, 16), decision("other-3", "allow")])],
  ["a fork from before what the witness has seen", "forked", inFile("witness"), () => forgeChain((drafts) => drafts.with(3, decision("a2", "allow")).with(4, outcome("a2", "success")))],
  ["a whole chain written anew under the same key", "forked", inFile("witness"), () => forgeChain(same, (record) => { record.config_digest = "sha256:other"; })],
  ["a witness's note under another key", "forked", inFile("witness"), () => present(bundleOf(goodChain), { witness: `# t\n${checkpointOf(goodChain, 17, [keys.attacker])}` })],
  ["a witness's note that is none", "bad_checkpoint", inFile("witness"), () => present(bundleOf(goodChain), { witness: goodWitness.replaceAll("head ", "tail ") })],
  ["a checkpoint older than the auditor accepts", "stale", inFile(checkpointFile), () => present(bundleOf(goodChain), { maxAgeSeconds: 86_400 })],
  ["a bundle of another chain than the trusted one", "unknown_key", at(0), () => present(bundleOf(goodChain), { keys: [keys.attacker.public.text] })],
];

function withHead(note: string, head: string): string {
  const checkpoint = parseCheckpoint(note) as SignedCheckpoint;
  return signCheckpoint({ ...checkpoint, head }, [keys.second]);
}

function without<T>(entries: ReadonlyMap<number, T>, seq: number): ReadonlyMap<number, T> {
  return new Map([...entries].filter(([key]) => key !== seq));
}

/** Every way to falsify evidence that both verifiers must see through alike. */
export const tamperCases: readonly TamperCase[] = [
  ...memberRows, ...fileRows, ...archiveRows, ...manifestRows, ...keyRows, ...noteRows, ...proofRows, ...lineRows,
  ...storyRows, ...approvalRows, ...fieldRows, ...witnessRows,
].map(([name, reason, place, make]) => ({ name, reason, ...place, make }));
