import type { BundlePart } from "../../../core/evidence/bundle/bundle-line.ts";
import type { Reason } from "../../../core/evidence/record/reason.ts";
import { checkpointSigner, parseCheckpoint, signCheckpoint, type SignedCheckpoint } from "../../../core/evidence/tree/checkpoint.ts";
import { genesisDetail } from "../../../core/evidence/key/key-history.ts";
import type { SigningKey } from "../../../core/action/signing-key.ts";
import type { Json } from "../../../core/action/json.ts";
import {
  approvalEvent, approvalOf, approved, argumentFields, bundleOf, checkpointOf, contentOf, decision, type Draft, event, goodDrafts, inclusionOf, keys, noHash,
  otherSession, outcome, placeChain, session, taskOf,
} from "../../support/evidence-world.ts";
import {
  distort, editEntry, factChain, editHead, editJson, editRecord, editText, forgeChain, goodChain, goodWitness, meddle, misstate, type OpenLines, present, type
  Presented, resign,
} from "../../support/forgery.ts";

/** One way to falsify evidence, and what both verifiers must say of it. */
export interface TamperCase {
  readonly name: string;
  readonly reason: Reason;
  readonly file: BundlePart;
  readonly seq?: number;
  readonly make: () => Presented;
}

type Row = readonly [name: string, reason: Reason, place: { file: BundlePart; seq?: number }, make: () => Presented];

const at = (seq: number): { file: "records"; seq: number } => ({ file: "records", seq });
const inPart = (file: BundlePart): { file: BundlePart } => ({ file });

/** Replaces the draft of that number. */
const replace = (seq: number, draft: Draft) => (drafts: Draft[]): Draft[] => drafts.with(seq, draft);
const insert = (seq: number, ...added: Draft[]) => (drafts: Draft[]): Draft[] => drafts.toSpliced(seq, 0, ...added);
const remove = (seq: number, count = 1) => (drafts: Draft[]): Draft[] => drafts.toSpliced(seq, count);
const same = (drafts: Draft[]): Draft[] => drafts;
const flipHex = (hex: string): string => (hex.startsWith("0") ? "1" : "0") + hex.slice(1);

const policyOf = (record: Draft): Draft => ((record.evaluation as Draft).policies as Draft[])[0] as Draft;

/** The operator changes one member of a record in the export, and seals it anew. */
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
  ["evaluation.policies.answer_digest, put in", "bad_inclusion", (r) => { policyOf(r).answer_digest = `sha256:${"0".repeat(64)}`; }],
  ["evaluation.policies.answer_digest, to no digest", "bad_schema", (r) => { policyOf(r).answer_digest = "sha256:00"; }],
  ["evaluation.policies.answer_digest, of shadow mode, to no digest", "bad_schema", (r) => { (r.evaluation as Draft).shadow = [{ answer_digest: `sha256:${"G".repeat(64)}` }]; }],
  ["evaluation.policies.replayable, to true", "bad_schema", (r) => { policyOf(r).replayable = true; }],
  ["evaluation.policies, to no list", "bad_schema", (r) => { (r.evaluation as Draft).policies = {}; }],
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
  `record 3: \`${member}\` changed`, reason, reason === "bad_schema" ? inPart("line 5") : at(3), () => resign((lines) => editRecord(lines, 3, edit)),
]);

/** The bytes of the file, and its lines. */
const lineRows: readonly Row[] = [
  ["trailing bytes behind the last line", "malformed", inPart("bundle"), () => distort((bundle) => Buffer.concat([bundle, Buffer.from("x")]))],
  ["a line behind the seal", "bad_schema", inPart("line 17"), () => distort((bundle) => Buffer.concat([bundle, Buffer.from("{}\n")]))],
  ["an empty line behind the seal", "malformed", inPart("line 17"), () => distort((bundle) => Buffer.concat([bundle, Buffer.from("\n")]))],
  ["an empty line before the head", "malformed", inPart("line 1"), () => distort((bundle) => Buffer.concat([Buffer.from("\n"), bundle]))],
  ["a byte order mark before the head", "malformed", inPart("line 1"), () => distort((bundle) => Buffer.concat([Buffer.from("\ufeff"), bundle]))],
  ["a bundle cut short in its last line", "malformed", inPart("bundle"), () => distort((bundle) => bundle.subarray(0, -60))],
  ["a bundle without its seal", "bad_schema", inPart("line 15"), () => distort((bundle) => bundle.subarray(0, bundle.lastIndexOf("\n", -2) + 1))],
  ["a bundle of one line", "malformed", inPart("bundle"), () => distort((bundle) => bundle.subarray(0, bundle.indexOf("\n") + 1))],
  ["an empty bundle", "malformed", inPart("bundle"), () => distort(() => Buffer.alloc(0))],
  ["a bundle without records", "missing_record", inPart("records"), () => resign((lines) => { lines.entries = []; })],
  ["lines that end as elsewhere", "not_canonical", inPart("line 1"), () => distort((bundle) => Buffer.from(String(bundle).replaceAll("\n", "\r\n")))],
  ["records in another order", "outcome_without_decision", at(4), () => resign((lines) => { lines.entries = swap(lines.entries, 3, 4); })],
  ["events in another order", "seq_gap", at(1), () => resign((lines) => { lines.entries = swap(lines.entries, 1, 2); })],
  ["a record twice", "seq_gap", at(3), () => resign((lines) => { lines.entries.splice(3, 0, lines.entries[3] as string); })],
  ["a line taken out by somebody without a key", "bad_signature", inPart("seal"), () => meddle((lines) => { lines.entries.splice(7, 1); })],
  ["a line put in twice by somebody without a key", "bad_signature", inPart("seal"), () => meddle((lines) => { lines.entries.splice(3, 0, lines.entries[3] as string); })],
  ["a proof changed by somebody without a key", "bad_signature", inPart("seal"), () => meddle((lines) => editEntry(lines, 3, (entry) => { entry.proof = []; }))],
  ["a field withheld by somebody without a key", "bad_signature", inPart("seal"), () => meddle((lines) => editEntry(lines, 3, (entry) => { entry.fields = []; }))],
  ["a record changed by somebody without a key", "bad_signature", inPart("seal"), () => meddle((lines) => editRecord(lines, 3, (record) => { record.id = "x"; }))],
  ["a member added to the head", "bad_schema", inPart("line 1"), () => resign((lines) => editHead(lines, (head) => { head.note = "hi"; }))],
  ["a member added to a record's line", "bad_schema", inPart("line 5"), () => resign((lines) => editEntry(lines, 3, (entry) => { entry.note = "hi"; }))],
  ["a member added to the seal", "bad_schema", inPart("line 16"), () => meddle((lines) => { lines.seal = editJson(lines.seal, (seal) => { seal.note = "hi"; }); })],
  ["a record's line without its proof", "bad_schema", inPart("line 5"), () => resign((lines) => editEntry(lines, 3, (entry) => { delete entry.proof; }))],
  ["a line without a record", "bad_schema", inPart("line 5"), () => resign((lines) => editEntry(lines, 3, (entry) => { entry.record = {}; }))],
  ["white space in a record", "not_canonical", inPart("line 5"), () => resign((lines) => editText(lines, 3, (line) => line.replace(":", ": ")))],
  ["a key twice in a record", "not_canonical", inPart("line 5"), () => resign((lines) => editText(lines, 3, (line) => line.replace('"kind":', '"kind":"decision","kind":')))],
  ["a key twice in a line", "not_canonical", inPart("line 5"), () => resign((lines) => editText(lines, 3, (line) => line.replace('"proof":', '"proof":[],"proof":')))],
  ["a number spelt otherwise", "not_canonical", inPart("line 5"), () => resign((lines) => editText(lines, 3, (line) => line.replace('"seq":3', '"seq":3.0')))],
  ["members in another order", "not_canonical", inPart("line 5"), () => resign((lines) => editText(lines, 3, (line) => JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(line) as Draft).reverse()))))],
  ["an escape where none is due", "not_canonical", inPart("line 5"), () => resign((lines) => editText(lines, 3, (line) => line.replace('"acme"', '"\\u0061cme"')))],
  ["a lone surrogate", "not_canonical", inPart("line 5"), () => resign((lines) => editText(lines, 3, (line) => line.replace('"acme"', '"\\ud800"')))],
  ["a record that is no JSON", "malformed", inPart("line 5"), () => resign((lines) => editText(lines, 3, () => "{"))],
  ["a record nested too deep", "malformed", inPart("line 5"), () => resign((lines) => editText(lines, 3, () => "[".repeat(129) + "]".repeat(129)))],
  ...[128, 400, 900, 5_000, 200_000].map((depth): Row => [
    `a record nested ${depth} deep, and one more`, "malformed", inPart("line 5"),
    () => resign((lines) => editText(lines, 3, () => `{"a":${"[".repeat(depth)}${"]".repeat(depth)}}`)),
  ]),
  ["bytes that are no UTF-8", "malformed", inPart("line 1"), () => distort((bundle) => Buffer.concat([Buffer.of(0xff), bundle]))],
];

const headRows: readonly Row[] = [
  ["the head of another tenant", "foreign_tenant", at(0), () => resign((lines) => editHead(lines, (head) => { head.tenant = "globex"; }))],
  ["the head of another chain", "foreign_chain", inPart("checkpoint"), () => resign((lines) => editHead(lines, (head) => { head.chain = "another"; }))],
  ["the head of another session", "foreign_session", at(3), () => resign((lines) => editHead(lines, (head) => { head.session = otherSession; }))],
  ["the head's schema changed", "bad_schema", inPart("line 1"), () => resign((lines) => editHead(lines, (head) => { head.schema = "evidence-bundle-v2"; }))],
  ["the head's time no time", "bad_schema", inPart("line 1"), () => resign((lines) => editHead(lines, (head) => { head.created = "today"; }))],
  ["the head changed after the bundle was sealed", "bad_signature", inPart("seal"), () => meddle((lines) => editHead(lines, (head) => { head.created = "2025-03-01T10:00:00.001Z"; }))],
  ["a seal by nobody known", "unknown_key", inPart("seal"), () => resign(() => undefined, keys.attacker)],
  ["a seal by the key before", "key_out_of_range", inPart("seal"), () => resign(() => undefined, keys.first)],
  ["a seal under another key's name", "bad_signature", inPart("seal"), () => meddle((lines) => { lines.seal = editJson(lines.seal, (seal) => { seal.signature = sealOf(keys.attacker).signature as string; }); })],
  ["a seal over the lines alone", "bad_signature", inPart("seal"), () => meddle((lines) => {
    const bytes = [lines.head, ...lines.entries].map((line) => `${line}\n`).join("");
    lines.seal = editJson(lines.seal, (seal) => { seal.signature = keys.second.sign(bytes).toString("base64"); });
  })],
  ["a seal of another bundle", "bad_signature", inPart("seal"), () => meddle((lines) => {
    lines.seal = String(bundleOf(goodChain, { ...contentOf(goodChain), created: "2025-03-01T10:00:00.001Z" })).split("\n").at(-2) as string;
  })],
  ["a signature whose spare bits are set", "bad_schema", inPart("line 16"), () => meddle((lines) => { lines.seal = editJson(lines.seal, (seal) => { seal.signature = `${String(seal.signature).slice(0, 85)}B==`; }); })],
  ["two signatures where one is due", "bad_schema", inPart("line 16"), () => meddle((lines) => { lines.seal = editJson(lines.seal, (seal) => { seal.signature = [seal.signature as string, seal.signature as string]; }); })],
];

const keyRows: readonly Row[] = [
  ["a whole chain under the attacker's key", "unknown_key", at(0), () => forgeChain((drafts) => [event("genesis", genesisDetail(keys.attacker.public)), ...drafts.slice(1, 13)])],
  ["a genesis that names no key", "bad_schema", at(0), () => forgeChain(replace(0, event("genesis", {})))],
  ["a rotation without the old key's signature", "bad_rotation", at(13), () => forgeChain(same, (record, seq) => { if (seq === 13) (record.detail as Draft).proof_old = (record.detail as Draft).proof_new as string; })],
  ["a rotation without the new key's signature", "bad_rotation", at(13), () => forgeChain(same, (record, seq) => { if (seq === 13) (record.detail as Draft).proof_new = (record.detail as Draft).proof_old as string; })],
  ["a rotation copied from another place", "bad_rotation", at(13), () => forgeChain(same, (record, seq) => { if (seq === 13) record.detail = (goodChain[13]?.record.detail ?? {}) as Draft; if (seq === 12) record.salt = "x"; })],
  ["a rotation left out", "unknown_key", inPart("checkpoint"), () => misstate((content) => ({ ...content, texts: content.texts.filter((text) => !text.includes('"kind":"key"')) }))],
  ["a genesis left out", "missing_record", inPart("records"), () => misstate((content) => ({ ...content, texts: content.texts.slice(1) }))],
];

const noteRows: readonly Row[] = [
  ["a checkpoint signed by the attacker", "unknown_key", inPart("checkpoint"), () => misstate((content) => ({ ...content, checkpoint: checkpointOf(goodChain, 17, [keys.attacker]) }))],
  ["a checkpoint signed by the key before", "key_out_of_range", inPart("checkpoint"), () => misstate((content) => ({ ...content, checkpoint: checkpointOf(goodChain, 17, [keys.first]) }))],
  ["a checkpoint over the rotation with one signature", "bad_signature", inPart("checkpoint"), () => resign((lines) => editHead(lines, (head) => { head.checkpoint = checkpointOf(goodChain, 14, [keys.second]); }))],
  ["a checkpoint with a word changed", "bad_signature", inPart("checkpoint"), () => resign((lines) => editNote(lines, (text) => text.replace("time 2025", "time 2026")))],
  ["a checkpoint without its signature", "bad_checkpoint", inPart("checkpoint"), () => resign((lines) => editNote(lines, (text) => text.slice(0, text.indexOf("—"))))],
  ["a checkpoint with its signature twice", "bad_signature", inPart("checkpoint"), () => resign((lines) => editNote(lines, (text) => text + text.slice(text.indexOf("—"))))],
  ["a record beyond its checkpoint", "seq_gap", at(15), () => misstate((content) => ({
    ...content, checkpoint: checkpointOf(goodChain, 15), proofs: new Map(Array.from({ length: 15 }, (_, seq) => [seq, inclusionOf(goodChain, seq, 15)])),
    witnessed: { note: checkpointOf(goodChain, 15), proof: [] },
  }))],
  ["a checkpoint whose head is another record", "head_mismatch", inPart("checkpoint"), () => misstate((content) => ({ ...content, checkpoint: withHead(content.checkpoint, noHash) }))],
];

const proofRows: readonly Row[] = [
  ["a proof too short", "bad_inclusion", at(3), editProof((proof) => proof.slice(1))],
  ["a proof too long", "bad_inclusion", at(3), editProof((proof) => [...proof, noHash])],
  ["a proof in the wrong order", "bad_inclusion", at(3), editProof((proof) => proof.toReversed())],
  ["a proof of nothing", "bad_inclusion", at(3), editProof(() => [])],
  ["a proof that is not hex", "bad_schema", inPart("line 5"), editProof(() => ["zz"])],
  ["a proof that is no list", "bad_schema", inPart("line 5"), editProof(() => "none")],
  ["the proof of another record", "bad_inclusion", at(3), editProof(() => inclusionOf(goodChain, 4, 17))],
  ["the proof of the head missing", "head_mismatch", inPart("checkpoint"), () => resign((lines) => editHead(lines, (head) => { head.head_proof = []; }))],
  ["the proof of the head too long", "head_mismatch", inPart("checkpoint"), () => resign((lines) => editHead(lines, (head) => { head.head_proof = [...(head.head_proof as string[]), noHash]; }))],
  ["the tree that a witness saw, of another size", "bad_consistency", inPart("consistency"), editGrowth((value) => { value.first = 9; })],
  ["the tree that a witness saw, larger than the chain", "bad_consistency", inPart("consistency"), editGrowth((value) => { value.first = 18; value.proof = []; })],
  ["the tree that a witness saw, of no size", "bad_consistency", inPart("consistency"), editGrowth((value) => { value.first = 0; })],
  ["the tree that a witness saw, with another root", "bad_consistency", inPart("consistency"), editGrowth((value) => { value.root = noHash; })],
  ["the tree that a witness saw, without its proof", "bad_schema", inPart("line 1"), editGrowth((value) => { delete value.proof; })],
  ["a checkpoint of an earlier size", "head_mismatch", inPart("checkpoint"), () => resign((lines) => editHead(lines, (head) => { head.checkpoint = checkpointOf(goodChain, 16); }))],
  ["the tree that a witness saw, with a further member", "bad_schema", inPart("line 1"), editGrowth((value) => { value.more = true; })],
  ["a state with another count", "state_missing", inPart("states"), editState((shown) => { ((shown.state as Draft).events as Draft).extension = 1; })],
  ["a state of another size", "state_missing", inPart("states"), editState((shown) => { (shown.state as Draft).size = 9; })],
  ["a state with a further member", "bad_schema", inPart("line 1"), editState((shown) => { shown.more = 1; })],
  ["a state whose proof states less of the session", "bad_state", inPart("states"), editState((shown) => { (shown.session as Draft).value = [3, 0]; })],
  ["a state whose proof states nothing of the session", "bad_state", inPart("states"), editState((shown) => { (shown.session as Draft).value = []; })],
  ["a state whose proof of the principal lacks a hash", "bad_state", inPart("states"), editState((shown) => { ((shown.principal as Draft).beside as string[]).pop(); })],
  ["an evaluation of an output without a decision", "bad_schema", inPart("line 6"), () => forgeChain(replace(4, outcome("a", "success", { evaluation: { policies: [] } })))],
  ["the witness's proof changed", "bad_consistency", inPart("consistency"), editGrowth((value) => { (value.proof as string[])[0] = noHash; })],
];

const gapRows: readonly Row[] = [
  ["a decision taken out of the middle", "outcome_without_decision", at(4), () => misstate((content) => ({ ...content, texts: content.texts.toSpliced(3, 1), proofs: without(content.proofs, 3), fields: without(content.fields, 3) }))],
  ["a blocked action taken out of the middle", "session_gap", at(8), () => misstate((content) => ({ ...content, texts: content.texts.toSpliced(5, 1), proofs: without(content.proofs, 7), fields: without(content.fields, 7) }))],
  ["the last outcome cut off", "open_outcome", at(14), () => misstate((content) => ({ ...content, texts: content.texts.slice(0, -1), proofs: without(content.proofs, 15) }))],
  ["a record of another tenant put in", "foreign_tenant", at(3), () => forgeChain(same, (record, seq) => { if (seq === 3) record.tenant = "globex"; })],
  ["a record of another session put in", "foreign_session", at(5), () => misstate((content) => ({ ...content, texts: content.texts.toSpliced(5, 0, goodChain[5]?.text ?? ""), proofs: new Map([...content.proofs, [5, inclusionOf(goodChain, 5, 17)]]),
    fields: new Map([...content.fields, [5, { arguments: argumentFields("other-1") }]]),
  }))],
];

const stops: readonly (readonly [what: string, scope: string | undefined, named?: Draft])[] = [
  ["its session", "session", { session }],
  ["its session, when nothing else could be,", undefined, { session }],
  ["its principal", "principal", { principal: "principal-v1-1" }],
  ["its tenant", "tenant"],
  ["the whole gateway", "gateway"],
];
const killed = (scope: string | undefined, named: Draft = {}): Draft => event("session", { event: "killed", ...(scope === undefined ? {} : { scope }), ...named });
const released = (scope: string | undefined, named: Draft = {}): Draft => event("session", { event: "released", ...(scope === undefined ? {} : { scope }), ...named });

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
  ...stops.map(([what, scope, named]): Row => [`an action allowed after ${what} was stopped`, "allow_after_kill", at(4), () => forgeChain(insert(3, killed(scope, named)))]),
  ["an action allowed after one of two stops was released", "allow_after_kill", at(6), () => forgeChain(insert(3, killed("tenant"), killed("gateway"), released("tenant")))],
];

/** The world's action `a` is allowed by record 3, `e` by record 14; the ticket has three uses. */
const spend = (use: number | undefined, changed: Draft = {}): Draft => ({ ticket: { id: "tkt_1", of: 3, standing: "valid", ...(use === undefined ? {} : { use }), ...changed } });
const spender = (id: string, use: number | undefined, changed: Draft = {}): Draft[] => [decision(id, "allow", spend(use, changed)), outcome(id, "success")];
const revoked = event("ticket", { event: "revoked", session, ticket: "tkt_1" });
const spending = (...drafts: Draft[][]) => forgeChain(insert(5, ...drafts.flat()));
const ticketRows: readonly Row[] = [
  ["a ticket's first use missing", "ticket_misused", at(5), () => spending(spender("t1", 2))],
  ["a ticket's use in the middle missing", "ticket_misused", at(7), () => spending(spender("t1", 1), spender("t2", 3))],
  ["a ticket's use twice", "ticket_misused", at(7), () => spending(spender("t1", 1), spender("t2", 1))],
  ["a ticket's use of number 0", "ticket_misused", at(5), () => spending(spender("t1", 0))],
  ["a ticket used once too often", "ticket_misused", at(11), () => spending(spender("t1", 1), spender("t2", 2), spender("t3", 3), spender("t4", 4))],
  ["a ticket that has more uses now", "ticket_misused", at(7), () => spending(spender("t1", 1), spender("t2", 2, { of: 4 }))],
  ["a ticket that does not say how many uses it has", "ticket_misused", at(5), () => forgeChain(insert(5, decision("t1", "allow", { ticket: { id: "tkt_1", standing: "valid", use: 1 } })))],
  ["a use of a ticket without a name", "ticket_misused", at(5), () => forgeChain(insert(5, decision("t1", "allow", { ticket: { of: 3, standing: "valid", use: 1 } })))],
  ["a use of a ticket that was not valid", "ticket_misused", at(5), () => spending(spender("t1", 1, { standing: "expired" }))],
  ["a use for what was not dispatched", "ticket_misused", at(5), () => forgeChain(insert(5, decision("t1", "block", spend(1))))],
  ["a use that an outcome spends", "ticket_misused", at(6), () => spending([decision("t1", "allow"), { ...outcome("t1", "success"), ...spend(1) }])],
  ["a ticket used after it was revoked", "ticket_misused", at(8), () => spending(spender("t1", 1), [revoked], spender("t2", 2))],
  ["a ticket used first after it was revoked", "ticket_misused", at(6), () => spending([revoked], spender("t1", 1))],
  ["a ticket's number that is a text", "bad_schema", inPart("line 7"), () => spending(spender("t1", 1, { use: "1" }))],
  ["a ticket's name that is a number", "bad_schema", inPart("line 7"), () => spending(spender("t1", 1, { id: 1 }))],
  ["an event that names a ticket by a number", "bad_schema", inPart("line 7"), () => spending([event("ticket", { event: "revoked", ticket: 1 })])],
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
  ["an approval in a scope nobody knows", "bad_schema", inPart("line 10"), () => forgeChain(replace(10, approvalEvent("approved", "d", { scope: "all" })))],
  ["an approval's event that names no approval", "bad_schema", inPart("line 10"), () => forgeChain(replace(10, approvalEvent("approved", "d", { id: 1 })))],
];

/** Chains with approvals in them that are sound, and what both verifiers remark. */
export const soundStories: readonly (readonly [string, readonly { reason: Reason; seq: number }[], () => Presented])[] = [
  ["held, endorsed, approved, used and answered", [], () => forgeChain(same)],
  ["recorded with a commitment to its facts", [], () => present(bundleOf(factChain))],
  ["recorded with a member that this version does not know", [], () => forgeChain(same, (record, seq) => { if (seq === 3) record.facts = ["f".repeat(64)]; })],
  ["decided by another server, with the digest of its answer", [], () => forgeChain(same, (record, seq) => {
    if (seq === 3) Object.assign(policyOf(record), { answer_digest: `sha256:${"a".repeat(64)}`, replayable: false });
  })],
  ["approved in scope `task`, and used with other values", [], () => forgeChain((drafts) => drafts.with(10, asTask()).with(11, approved("d", approvalOf("task"))))],
  ["denied at first, and approved when asked for again", [], () => forgeChain((drafts) => drafts.with(9, approvalEvent("denied", "c", { id: "apr_0" })))],
  ["dispatched after all that stopped it was released", [], () => forgeChain(insert(3, ...stops.flatMap(([, scope, named]) => [killed(scope, named), released(scope, named)])))],
  ["dispatched while another session and another principal were stopped", [], () => forgeChain(insert(3, killed("session", { session: otherSession }), killed("principal", { principal: "principal-v1-2" })))],
  ["approved by break-glass and accounted for", [], () => forgeChain((drafts) => drafts.with(10, approvalEvent("approved", "d", breakGlass)).toSpliced(13, 0, approvalEvent("post_mortem", "d", { by: "principal-v1-2", text: "why" })))],
  ["permitted by a ticket, as often as it says, and by another", [], () => spending(spender("t1", 1), spender("o1", 1, { id: "tkt_2", of: 1 }), spender("t2", 2), spender("t3", 3), [revoked])],
  ["presented with tickets that were not used", [], () => spending(spender("t1", undefined), [decision("t2", "block", spend(undefined, { standing: "used_up" })), decision("t3", "block", { ticket: { standing: "forged" } })])],
  ["approved by break-glass and not accounted for", [{ reason: "post_mortem_missing", seq: 10 }], () => forgeChain(replace(10, approvalEvent("approved", "d", breakGlass)))],
];

const editFirst = (from: string, to: string) => editFields((fields) => {
  const at = fields.findIndex((text) => text.includes(from));
  return fields.with(at, (fields[at] as string).replace(from, to));
});
/** Record 3 is the decision about an action with five arguments, of which one is withheld. */
const fieldRows: readonly Row[] = [
  ["a disclosed value changed", "bad_disclosure", at(3), editFirst("héllo", "hello")],
  ["a disclosed name changed", "bad_disclosure", at(3), editFirst('"content"', '"other"')],
  ["a disclosed salt changed", "bad_disclosure", at(3), editFirst('["field-v1","', '["field-v1","A')],
  ["a disclosed value spelt otherwise", "bad_disclosure", at(3), editFirst('"mode",420', '"mode",420.0')],
  ["a text that is no field disclosed", "bad_schema", inPart("line 5"), editFirst('["field-v1"', '["leaf-v1"')],
  ["a commitment missing", "bad_disclosure", at(3), editFields((fields) => fields.slice(1))],
  ["a commitment added", "bad_disclosure", at(3), editFields((fields) => [...fields, "f".repeat(64)])],
  ["a commitment twice", "bad_disclosure", at(3), editFields((fields) => [fields[0] as string, ...fields])],
  ["fields in another order", "bad_disclosure", at(3), editFields((fields) => fields.toReversed())],
  ["a record's fields missing", "bad_disclosure", at(3), editFields(() => [])],
  ["fields of a record that has none", "bad_disclosure", at(2), editFields(() => ["f".repeat(64)], 2)],
  ["fields of an output that there was not", "bad_disclosure", at(15), editFields(() => ["f".repeat(64)], 15)],
  ["the fields of another record", "bad_disclosure", at(4), () => resign((lines) => editEntry(lines, 4, (entry) => { entry.fields = (JSON.parse(lines.entries[3] as string) as Draft).fields as string[]; }))],
  ["fields that are no list", "bad_schema", inPart("line 5"), editFields(() => "none")],
];

const editFacts = (edit: (facts: string[]) => Json | undefined, seq = 5) => (): Presented => resign((lines) => editEntry(lines, seq, (entry) => {
  const facts = edit((entry.facts ?? []) as string[]);
  if (facts === undefined) delete entry.facts;
  else entry.facts = facts;
}), keys.second, factChain);
const replaceFact = (from: string, to: string) => editFacts((facts) => facts.map((text) => text.replace(from, to)));
const editFactRecord = (seq: number, edit: (facts: Draft) => void) => (): Presented => forgeChain(insert(5, decision("fact-1", "allow"), outcome("fact-1", "success")),
  (record, at) => { if (at === seq) edit((record.action as Draft).facts as Draft); });
/** Record 5 of this chain is the decision about an action with facts, of which one member is withheld; record 6 is its outcome. */
const factRows: readonly Row[] = [
  ["a disclosed fact changed", "bad_disclosure", at(5), replaceFact("db.example", "db.exannple")],
  ["a disclosed fact renamed", "bad_disclosure", at(5), replaceFact('"hosts"', '"paths"')],
  ["a fact disclosed under another salt", "bad_disclosure", at(5), replaceFact('["field-v1","', '["field-v1","A')],
  ["a text that is no field among the facts", "bad_schema", inPart("line 7"), replaceFact('["field-v1"', '["leaf-v1"')],
  ["a commitment to a fact missing", "bad_disclosure", at(5), editFacts((facts) => facts.slice(1))],
  ["a commitment to a fact added", "bad_disclosure", at(5), editFacts((facts) => [...facts, "f".repeat(64)])],
  ["facts in another order", "bad_disclosure", at(5), editFacts((facts) => facts.toReversed())],
  ["the facts of a record missing", "bad_disclosure", at(5), editFacts(() => undefined)],
  ["no fact where there are some", "bad_disclosure", at(5), editFacts(() => [])],
  ["the arguments of an action as its facts", "bad_disclosure", at(5), () => resign((lines) => editEntry(lines, 5, (entry) => { [entry.facts, entry.fields] = [entry.fields as Json, entry.facts as Json]; }), keys.second, factChain)],
  ["facts of a decision that commits to none", "bad_disclosure", at(3), editFacts(() => ["f".repeat(64)], 3)],
  ["the facts of a decision with its outcome", "bad_disclosure", at(6), () => resign((lines) => {
    const { facts } = JSON.parse(lines.entries[5] as string) as Draft;
    editEntry(lines, 6, (entry) => { entry.facts = facts as Json; });
  }, keys.second, factChain)],
  ["facts of an event", "bad_disclosure", at(2), editFacts(() => ["f".repeat(64)], 2)],
  ["facts that are no list", "bad_schema", inPart("line 7"), editFacts(() => "none")],
  ["the effect of an action changed in the export", "bad_inclusion", at(5), () => resign((lines) => editRecord(lines, 5, (record) => { ((record.action as Draft).facts as Draft).effect = "read"; }), keys.second, factChain)],
  ["the facts taken out of a record in the export", "bad_inclusion", at(5), () => resign((lines) => editEntry(lines, 5, (entry) => { delete entry.facts; delete ((entry.record as Draft).action as Draft).facts; }), keys.second, factChain)],
  ["an outcome of another effect than its decision", "outcome_mismatch", at(6), editFactRecord(6, (facts) => { facts.effect = "read"; })],
  ["a commitment to facts that is no text", "bad_schema", inPart("line 7"), editFactRecord(5, (facts) => { facts.digest = 1; })],
  ["facts without an effect", "bad_schema", inPart("line 7"), editFactRecord(5, (facts) => { delete facts.effect; })],
];

/** What only a witness can tell. */
const witnessRows: readonly Row[] = [
  ["a whole older copy, exported anew", "behind_witness", inPart("witness"), () => {
    const older = placeChain({ drafts: goodDrafts().slice(0, 13) });
    return present(bundleOf(older, contentOf(older)));
  }],
  ["a tail cut off and written anew", "forked", inPart("witness"), () => forgeChain((drafts) => [...drafts.slice(0, 16), decision("other-3", "allow")])],
  ["a fork from before what the witness has seen", "forked", inPart("witness"), () => forgeChain((drafts) => drafts.with(3, decision("a2", "allow")).with(4, outcome("a2", "success")))],
  ["a whole chain written anew under the same key", "forked", inPart("witness"), () => forgeChain(same, (record) => { record.config_digest = "sha256:other"; })],
  ["a witness's note under another key", "unknown_key", inPart("witness"), () => present(bundleOf(goodChain), { witness: `# t\n${checkpointOf(goodChain, 17, [keys.attacker])}` })],
  ["a witness's note that is none", "bad_checkpoint", inPart("witness"), () => present(bundleOf(goodChain), { witness: goodWitness.replaceAll("head ", "tail ") })],
  ["a checkpoint older than the auditor accepts", "stale", inPart("checkpoint"), () => present(bundleOf(goodChain), { maxAgeSeconds: 86_400 })],
  ["a bundle of another chain than the trusted one", "unknown_key", at(0), () => present(bundleOf(goodChain), { keys: [keys.attacker.public.text] })],
];

function swap(lines: readonly string[], one: number, other: number): string[] {
  return lines.with(one, lines[other] as string).with(other, lines[one] as string);
}

function sealOf(key: SigningKey): Draft {
  return JSON.parse(String(resign(() => undefined, key).bundle).split("\n").at(-2) as string) as Draft;
}

function editNote(lines: OpenLines, edit: (note: string) => string): void {
  editHead(lines, (head) => { head.checkpoint = edit(head.checkpoint as string); });
}

function editProof(edit: (proof: string[]) => Json): () => Presented {
  return () => resign((lines) => editEntry(lines, 3, (entry) => { entry.proof = edit(entry.proof as string[]); }));
}

/** Changes the state of the checkpoint as the bundle shows it. */
function editState(edit: (shown: Draft) => void): () => Presented {
  return () => resign((lines) => editHead(lines, (head) => edit((head.states as Draft[])[0] as Draft)));
}

function editGrowth(edit: (consistency: Draft) => void): () => Presented {
  return () => resign((lines) => editHead(lines, (head) => edit(head.consistency as Draft)));
}

function editFields(edit: (fields: string[]) => Json, seq = 3): () => Presented {
  return () => resign((lines) => editEntry(lines, seq, (entry) => { entry.fields = edit(entry.fields as string[]); }));
}

function withHead(note: string, head: string): string {
  const checkpoint = parseCheckpoint(note) as SignedCheckpoint;
  return signCheckpoint({ ...checkpoint, head }, [checkpointSigner(checkpoint.chain, keys.second)]);
}

function without<T>(entries: ReadonlyMap<number, T>, seq: number): ReadonlyMap<number, T> {
  return new Map([...entries].filter(([key]) => key !== seq));
}

/** Every way to falsify evidence that both verifiers must see through alike. */
export const tamperCases: readonly TamperCase[] = [
  ...memberRows, ...lineRows, ...headRows, ...keyRows, ...noteRows, ...proofRows, ...gapRows,
  ...storyRows, ...approvalRows, ...ticketRows, ...fieldRows, ...factRows, ...witnessRows,
].map(([name, reason, place, make]) => ({ name, reason, ...place, make }));
