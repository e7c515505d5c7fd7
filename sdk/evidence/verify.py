#!/usr/bin/env python3
"""Verifies an evidence bundle with nothing but python3 and openssl; `verify` is the whole argument in its order. README.md says how to run this, REASONS.md what reasons mean."""
import argparse, base64, hashlib, json, pathlib, re, subprocess, sys, tempfile, time
raw, EXITS = base64.b64decode, {"witnessed": 0, "self-attested": 10, "stale": 20, "diverged": 30, "invalid": 40, "incomplete": 50}
GRADES = dict(stale="stale", forked="diverged", behind_witness="diverged", missing_record="incomplete", session_gap="incomplete", open_outcome="incomplete")
COMMITTED, PREFIX = {"decision": "arguments_digest", "outcome": "output_digest"}, bytes.fromhex("302a300506032b6570032100")  # of fields; of an Ed25519 key in DER
# Shapes: a text is a pattern, a list says what each item is, a dict what members there are at least ("?": maybe), a tuple a choice, `int` a count, False itself.
TEXT, HEX, TIME, B64 = ".*", "[0-9a-f]{64}", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "[A-Za-z0-9+/]"; ANSWERS = [{"answer_digest?": "sha256:" + HEX, "replayable?": False}]
KEY, SIGNATURE, ORIGIN, FIELDS = f"{B64}{{42}}[AEIMQUYcgkosw048]=", f"{B64}{{85}}[AQgw]==", "agent-governance-gateway/evidence/", [HEX + r'|\["field-v1",.*']
BASE = {"schema": "evidence-record-v1", "chain": TEXT, "tenant": TEXT, "time": TIME, "seq": int, "prev_hash": HEX, "writer": {"epoch": int}}
STEP = {**BASE, "action": {"arguments_digest": TEXT, "facts?": dict(digest=TEXT, effect=TEXT), "fingerprint": TEXT, "id": TEXT, "output_digest?": TEXT}, "principal": {"id": TEXT},
        "approval?": dict(fingerprint=TEXT, id=TEXT, state=TEXT), "session": dict(id=TEXT, index=int, prev_hash=HEX), "evaluation?": {"policies?": ANSWERS, "shadow?": ANSWERS},
        "ticket?": {"id?": TEXT, "of?": int, "use?": int}}
RECORD = ({**STEP, "kind": "decision", "effect": "dispatched|not_dispatched", "evaluation": {"decision": TEXT}}, {**STEP, "kind": "outcome", "effect": "success|error|unknown"},
          {**BASE, "kind": "approval", "detail": {"event": TEXT, "id": TEXT, "session": TEXT, "scope?": "exact|task"}},
          {**BASE, "kind": "genesis|extension|configuration|key|session|ticket|admin|redaction|retention|heartbeat|clock", "detail": {"ticket?": TEXT}})
HANDED, GROWTH = {"event": "rotated", "old_key_id": TEXT, "proof_new": SIGNATURE, "proof_old": SIGNATURE}, {"first": int, "root": HEX, "proof": [HEX]}
HEAD = {"schema": "evidence-bundle-v1", **dict.fromkeys(("tenant", "chain", "session", "checkpoint"), TEXT), "created": TIME, "head_proof": [HEX], "consistency": GROWTH}
NOTE = (rf"(?a)(?<![^\n])(?P<text>{ORIGIN}(?P<chain>[\w-]{{1,64}})\n(?P<size>[1-9]\d{{0,14}})\n(?P<root>{KEY})\nhead (?P<head>{HEX})\n"
        rf"time (?P<time>{TIME})\n)\n(?P<lines>(— evidence/(?P=chain)/[0-9a-f]{{16}} {B64}{{48}}{KEY}\n){{1,16}})")
def fits(shape, x):
    if isinstance(shape, tuple): return any(fits(each, x) for each in shape)
    if isinstance(shape, str): return isinstance(x, str) and re.fullmatch(shape, x, re.A | re.S) is not None
    if isinstance(shape, list): return isinstance(x, list) and all(fits(shape[0], item) for item in x)
    return x is False if shape is False else type(x) is int and x >= 0 if shape is int else isinstance(x, dict) and all(
        fits(inner, x[name.rstrip("?")]) if name.rstrip("?") in x else name.endswith("?") for name, inner in shape.items())
class Breach(Exception): pass
def demand(place, *rules):  # a part of the bundle or a record's number; then pairs: what must hold, and the reason if it does not
    for reason in (reason for holds, reason in zip(rules[::2], rules[1::2]) if not holds):
        raise Breach({"reason": reason, **({"file": place} if isinstance(place, str) else {"file": "records", "seq": place})})
def sha(data): return hashlib.sha256(data).hexdigest()
def depth(x): return 1 + max(map(depth, x.values() if isinstance(x, dict) else x), default=0) if isinstance(x, (dict, list)) else 0
def number(text): return int(text) if re.fullmatch("[0-9-]{1,15}", text) else None  # what is no short integer comes out as another text
def ordered(members): return dict(sorted(members, key=lambda member: member[0].encode("utf-16-be", "surrogatepass")))
def jcs(x): return json.dumps(x, ensure_ascii=False, separators=(",", ":"))  # RFC 8785, of members that are in order
def read(line, place, shape):  # JSON in its one spelling, so that no two readers see two things, with no member that nobody checks
    try: demand(place, depth(value := json.loads(line.decode(), object_pairs_hook=ordered, parse_int=number, parse_float=number, parse_constant=int)) <= 128, "malformed")
    except (ValueError, RecursionError): demand(place, False, "malformed")
    demand(place, jcs(value).encode("utf8", "surrogatepass") == line, "not_canonical", fits(shape, value) and value.keys() <= {name.rstrip("?") for name in shape}, "bad_schema")
    return value
def signed(key, message, signature):  # Ed25519, by openssl
    with tempfile.TemporaryDirectory() as folder:
        for name, data in ("key", PREFIX + raw(key)), ("message", message), ("signature", signature): pathlib.Path(folder, name).write_bytes(data)
        command = "openssl pkeyutl -verify -pubin -keyform DER -inkey key -rawin -in message -sigfile signature"
        return subprocess.run(command.split(), cwd=folder, capture_output=True).returncode == 0
def read_keys(records):  # by id, with the sizes that each signs: the genesis names the first key, each rotation the next, signed by both
    keys, old = {}, ""
    for r in (r for r in records if r["kind"] in ("genesis", "key")):
        d, new = r["detail"], "new_" if r["kind"] == "key" else ""
        key, name = d.get(new + "public_key"), d.get(new + "key_id")
        text = f"evidence-key-rotation-v1\n{r['chain']}\n{r['seq']}\n{old}\n{name}\n{r['prev_hash']}\n".encode()
        sound = bool(new) == bool(keys) and fits(KEY, key) and name == sha(raw(key))[:16] and name not in keys and (not new or fits(HANDED, d) and (
            d["old_key_id"] == old and signed(keys[old][0], text, raw(d["proof_old"])) and signed(key, text, raw(d["proof_new"]))))
        demand(r["seq"], sound, "bad_rotation" if new else "bad_schema")
        if new: keys[old] = (*keys[old][:2], r["seq"] + 1)
        keys[name], old = (key, r["seq"] + 1, 10 ** 15), name
    return keys
def check_signatures(place, message, signatures, keys, size):  # pairs of a key's id and what it signed; returns the ids that are due
    due = [name for name, (_, first, last) in keys.items() if first <= size <= last]
    for name, _ in signatures: demand(place, name in keys, "unknown_key", name in due, "key_out_of_range")
    demand(place, all(signed(keys[name][0], message, signature) for name, signature in signatures), "bad_signature")
    return sorted(due)
def check_note(place, note, keys):  # a C2SP signed note, signed by every key valid at its size and by no other
    signatures = [(name, raw(blob)[4:]) for name, blob in re.findall(r"/(\w{16}) (.*)\n", note["lines"])]
    demand(place, sorted(name for name, _ in signatures) == check_signatures(place, note["text"].encode(), signatures, keys, int(note["size"])), "bad_signature")
def node(left, right): return left and right and sha(b"\1" + bytes.fromhex(left + right))  # "" where the proof lacks one
def climb(m, n, proof, leaf="", root=""):  # RFC 6962: the roots of the first m and of all n leaves, up from the m-th or from the first root
    if n == 1 or m == n and not leaf: return [leaf or root or "".join(proof)] * 2 if len(proof) == (not leaf + root) else ["", ""]
    half, beside = 1 << (n - 1).bit_length() - 1, "".join(proof[-1:])
    old, new = climb(m - half, n - half, proof[:-1], leaf) if m > half else climb(m, half, proof[:-1], leaf, root)
    return [node(beside, old), node(beside, new)] if m > half else [old, node(new, beside)]
def included(seq, size, proof, digest, root): return climb(seq + 1, size, proof, sha(b"\0" + bytes.fromhex(digest)))[1] == root
def committed(due, fields):  # each field is the text that was hashed, or the hash where it is withheld
    hashes = [field if fits(HEX, field) else sha(field.encode()) for field in fields]
    return hashes == sorted(set(hashes)) and due == "sha256:" + sha(jcs(["fields-v1", hashes]).encode()) or due is None and not fields
def disclosed(a, r): return committed(a.get(COMMITTED.get(r["kind"])), r["fields"]) and committed((r["kind"] == "decision" and a.get("facts") or {}).get("digest"), r["facts"])
def permits(given, use, action, session):  # whether an approval is for this very action, or in scope `task` for it with other values
    task = jcs({name: action.get(name) for name in ("capability", "protocol", "target", "task", "tool")})
    bound = jcs(given.get("action")) == task if given.get("scope") == "task" else use["fingerprint"] == action["fingerprint"]
    return bound and (given.get("fingerprint"), given.get("session"), "consumed") == (use["fingerprint"], session, use["state"])
def without_output(action): return jcs({name: value for name, value in action.items() if name != "output_digest"})
def tell(records, head, size, root):  # each record is authentic, and may follow those before it; returns what is missing and what is odd
    remarks, actions, given, owed, used, spent, killed, before, end = [], {}, {}, {}, set(), {}, set(), dict(seq=-1, hash="0" * 64, time="", writer={"epoch": 0}), (0, "0" * 64)
    for r in records:
        seq, kind, step, settles = r["seq"], r["kind"], r["kind"] in COMMITTED, r["kind"] == "outcome"
        action, own, use, ticket = (r.get(name, {}) if step else {} for name in ("action", "session", "approval", "ticket"))
        past, gap, sent = actions.setdefault(action.get("id"), []), own.get("index", 0) > end[0], step and r["effect"] == "dispatched"
        decided, verdict, detail = past[0] if past else r, sent and r["evaluation"]["decision"], {} if step else r["detail"]
        spends, meant, (last, most) = "use" in ticket, (ticket.get("standing"), ticket.get("of")), spent.get(ticket.get("id"), (0, ticket.get("of", 0) * ("id" in ticket)))
        demand(seq, before["seq"] < seq < size, "seq_gap", (kind == "genesis") == (seq == 0), "bad_schema", r["tenant"] == head["tenant"], "foreign_tenant",
               r["chain"] == head["chain"], "foreign_chain", included(seq, size, r["proof"], r["hash"], root), "bad_inclusion",
               disclosed(action, r), "bad_disclosure", seq > before["seq"] + 1 or r["prev_hash"] == before["hash"], "bad_prev_hash",
               r["writer"]["epoch"] >= before["writer"]["epoch"], "stale_epoch", not step or own["id"] == head["session"], "foreign_session",
               not step or gap or (own["index"], own["prev_hash"]) == end, "bad_session_link", settles or not past, "second_decision",
               not sent or killed.isdisjoint(map(jcs, (["session", own["id"]], ["principal", r["principal"]["id"]], ["tenant", None], ["gateway", None]))), "allow_after_kill",
               not sent or verdict == "allow" or verdict == "review" and use, "dispatch_without_allow", not sent or use.get("id") not in used, "approval_consumed_twice",
               not (sent and use) or verdict == "review" and permits(given.get(use["id"], {}), use, action, own["id"]), "approval_mismatch",
               not settles or past, "outcome_without_decision", not settles or decided["effect"] == "dispatched", "outcome_after_block",
               not settles or len(past) == 1, "second_outcome", not settles or without_output(action) == without_output(decided["action"]), "outcome_mismatch", not spends or sent
               and meant == ("valid", most) and last < ticket["use"] <= most and (gap or "session_gap" in dict(remarks) or ticket["use"] == last + 1), "ticket_misused")
        remarks += [("time_reversed", seq)] * (r["time"] < before["time"]) + [("session_gap", seq)] * gap
        before, end, event, scope = r, (own["index"] + 1, r["hash"]) if step else end, detail.get("event"), detail.get("scope", "session")
        if step: past.append(r); used |= {use["id"]} if sent and use else set()
        if spends or kind == "ticket" and event == "revoked": spent[detail.get("ticket", ticket.get("id"))] = ticket.get("use", 0), ticket.get("of", 0)
        if kind == "approval" and event in ("approved", "denied", "expired"): given[detail["id"]] = detail if event == "approved" else {}
        if kind == "approval" and (event == "post_mortem" or event == "approved" and "break_glass" in detail): owed[detail["id"]] = event, seq
        if kind == "session" and event in ("killed", "released"): about = {jcs([scope, detail.get(str(scope))])}; killed = killed | about if event == "killed" else killed - about
    remarks += [("open_outcome", past[0]["seq"]) for past in actions.values() if len(past) == 1 and past[0]["effect"] == "dispatched"]
    remarks += [("post_mortem_missing", seq) for event, seq in owed.values() if event == "approved"]
    return [{"reason": reason, "seq": seq} for reason, seq in sorted(remarks, key=lambda remark: remark[1])]
def is_kept(text, head, known, keys):  # whether the witness kept this very history; `known`: the roots of the sizes that the bundle proves
    notes = [(note, int(note["size"]), raw(note["root"]).hex()) for note in re.finditer(NOTE, text) if note["chain"] == head["chain"]]
    demand("witness", notes or f"\n{ORIGIN}{head['chain']}\n" not in "\n" + text, "bad_checkpoint")
    for note, size, root in notes:
        demand("witness", size <= max(known) or note["time"] >= head["created"], "behind_witness", known.get(size, root) == root, "forked")
        if size in known: check_note("witness", note, keys)
    return any(size in known for _, size, _ in notes)
def verify(data, trusted, witness, max_age, report):  # who signed it comes first, then each record in its turn, then what others say
    *lines, rest = data.split(b"\n")
    demand("bundle", not rest and len(lines) > 1, "malformed")
    head, seal = read(lines[0], "line 1", HEAD), read(lines[-1], f"line {len(lines)}", {"key_id": TEXT, "signature": SIGNATURE})
    entries = [read(line, f"line {at}", {"facts?": FIELDS, "fields": FIELDS, "proof": [HEX], "record": RECORD}) for at, line in enumerate(lines[1:-1], 2)]
    records, report["records"] = [{**entry["record"], "facts": [], **entry, "hash": sha(jcs(entry["record"]).encode())} for entry in entries], len(entries)
    demand("records", records and records[0]["kind"] == "genesis", "missing_record")
    keys, note = read_keys(records), re.fullmatch(NOTE, head["checkpoint"])
    demand(0, not trusted or records[0]["detail"]["public_key"] in trusted, "unknown_key")
    demand("checkpoint", note, "bad_checkpoint", note and note["chain"] == head["chain"], "foreign_chain")
    check_note("checkpoint", note, keys)
    size, root, report["head"] = int(note["size"]), raw(note["root"]).hex(), note["head"]
    check_signatures("seal", b"evidence-bundle-v1\n" + data[:-len(lines[-1]) - 1], [(seal["key_id"], raw(seal["signature"]))], keys, size)
    demand("checkpoint", included(size - 1, size, head["head_proof"], note["head"], root), "head_mismatch")
    first, old, growth = (head["consistency"][name] for name in ("first", "root", "proof"))  # the tree as a witness last saw it
    demand("consistency", 0 < first <= size and climb(first, size, growth, root=old) == [old, root], "bad_consistency")
    remarks = tell(records, head, size, root); report["warnings"] = [remark for remark in remarks if remark["reason"] not in GRADES]
    kept = is_kept((witness or b"").decode("utf8", "replace"), head, {first: old, size: root}, keys)
    for remark in remarks: demand(remark["seq"], remark in report["warnings"], remark["reason"])
    demand("checkpoint", max_age is None or note["time"] >= time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(max(0, time.time() - max_age))), "stale")
    return "witnessed" if kept and trusted else "self-attested"
def judge(bundle, key=(), witness=None, max_age=None):
    report = {"verdict": None, "exit": None, "first_bad": None, "warnings": [], "records": 0, "head": None}
    try: report["verdict"] = verify(bundle, key, witness, max_age, report)
    except Breach as breach: report.update(first_bad=breach.args[0], verdict=GRADES.get(breach.args[0]["reason"], "invalid"))
    return {**report, "exit": EXITS[report["verdict"]]}
if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bundle", type=lambda path: pathlib.Path(path).read_bytes())
    parser.add_argument("--key", action="append", default=[], help="first public key of the chain, base64, from the operator")
    parser.add_argument("--witness", type=lambda path: pathlib.Path(path).read_bytes(), help="file with the witness's notes")
    parser.add_argument("--max-age", type=float, help="oldest checkpoint accepted, in seconds")
    sys.exit(print(json.dumps(found := judge(**vars(parser.parse_args())), indent=2)) or found["exit"])
