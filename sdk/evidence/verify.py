#!/usr/bin/env python3
"""Verifies an evidence bundle with nothing but python3 and openssl; `verify` is the whole argument in its order.
README.md says how to run this, REASONS.md what reasons mean."""
import argparse, base64, hashlib, json, pathlib, re, subprocess, sys, tempfile, time
raw, PREFIX = base64.b64decode, bytes.fromhex("302a300506032b6570032100")  # of an Ed25519 key in DER
EXITS = {"witnessed": 0, "self-attested": 10, "stale": 20, "diverged": 30, "invalid": 40, "incomplete": 50}
INCOMPLETE, DIVERGED = ("missing_record", "session_gap", "open_outcome"), ("forked", "behind_witness")
COMMITTED = {"decision": "arguments_digest", "outcome": "output_digest"}
WARNINGS = "post_mortem_missing", "time_reversed"
# Shapes: a text is a pattern, a list says what each item is, a dict what members there are at least ("?": maybe),
# a tuple a choice, `int` a count, False itself.
TEXT, HEX, B64, TIME = ".*", "[0-9a-f]{64}", "[A-Za-z0-9+/]", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
KEY, SIGNATURE, FIELDS = f"{B64}{{42}}[AEIMQUYcgkosw048]=", f"{B64}{{85}}[AQgw]==", [HEX + r'|\["field-v1",.*']
ORIGIN, ANSWERS = "agent-governance-gateway/evidence/", [{"answer_digest?": "sha256:" + HEX, "replayable?": False}]
BASE = {"schema": "evidence-record-v1", "chain": TEXT, "tenant": TEXT, "time": TIME, "seq": int, "prev_hash": HEX,
        "writer": {"epoch": int}}
ACTION = {"arguments_digest": TEXT, "facts?": {"digest": TEXT, "effect": TEXT}, "fingerprint": TEXT, "id": TEXT,
          "output_digest?": TEXT}
STEP = {**BASE, "action": ACTION, "principal": {"id": TEXT}, "session": {"id": TEXT, "index": int, "prev_hash": HEX},
        "approval?": dict(fingerprint=TEXT, id=TEXT, state=TEXT), "ticket?": {"id?": TEXT, "of?": int, "use?": int},
        "evaluation?": {"decision": TEXT, "policies?": ANSWERS, "shadow?": ANSWERS}}
OTHERS = "genesis|extension|configuration|key|session|ticket|admin|redaction|retention|heartbeat|clock"
RECORD = ({**STEP, "kind": "decision", "effect": "dispatched|not_dispatched", "evaluation": {"decision": TEXT}},
          {**STEP, "kind": "outcome", "effect": "success|error|unknown"},
          {**BASE, "kind": "approval", "detail": {"event": TEXT, "id": TEXT, "session": TEXT, "scope?": "exact|task"}},
          {**BASE, "kind": OTHERS, "detail": {"ticket?": TEXT}})
HANDED = {"event": "rotated", "old_key_id": TEXT, "proof_new": SIGNATURE, "proof_old": SIGNATURE}
COUNTED = "configuration", "extension", "gateway", "key", "redaction", "retention", "tenant"
SHOWN = {"beside": [HEX], "other": [HEX], "salt": TEXT, "value": [int]}
STATE = dict(state={"events": dict.fromkeys(COUNTED, int), "map": HEX, "size": int}, principal=SHOWN, session=SHOWN)
HEAD = {"schema": "evidence-bundle-v1", **dict.fromkeys(("tenant", "chain", "session", "checkpoint"), TEXT),
        "created": TIME, "head_proof": [HEX], "consistency": dict(first=int, root=HEX, proof=[HEX]), "states?": [STATE]}
NOTE = (rf"(?a)(?<![^\n])(?P<text>{ORIGIN}(?P<chain>[\w-]{{1,64}})\n(?P<size>[1-9]\d{{0,14}})\n(?P<root>{KEY})\n"
        rf"head (?P<head>{HEX})\ntime (?P<time>{TIME})\n(state (?P<state>{HEX})\n)?)\n"
        rf"(?P<lines>(— evidence/(?P=chain)/[0-9a-f]{{16}} {B64}{{48}}{KEY}\n){{1,16}})")
def fits(shape, x):
    if isinstance(shape, tuple): return any(fits(each, x) for each in shape)
    if isinstance(shape, str): return isinstance(x, str) and re.fullmatch(shape, x, re.A | re.S) is not None
    if isinstance(shape, list): return isinstance(x, list) and all(fits(shape[0], item) for item in x)
    if shape is False or shape is int: return x is False if shape is False else type(x) is int and x >= 0
    return isinstance(x, dict) and all(fits(inner, x[name.rstrip("?")]) if name.rstrip("?") in x else name.endswith("?")
                                       for name, inner in shape.items())
def closed(shape, x):  # whether what fits has no member that nobody checks; records may have more
    if isinstance(shape, list): return all(closed(shape[0], item) for item in x)
    members = {name.rstrip("?"): inner for name, inner in shape.items()} if isinstance(shape, dict) else {}
    return not members or x.keys() <= members.keys() and all(closed(members[name], value) for name, value in x.items())
class Breach(Exception): pass
def demand(place, *rules):  # a part of the bundle or a record's number; pairs: what must hold, and the reason if not
    where = {"file": place} if isinstance(place, str) else {"file": "records", "seq": place}
    for holds, reason in zip(rules[::2], rules[1::2]):
        if not holds: raise Breach({"reason": reason, **where})
def sha(data): return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()
def depth(x):
    inner = x.values() if isinstance(x, dict) else x if isinstance(x, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)
def number(text): return int(text) if re.fullmatch("[0-9-]{1,15}", text) else None  # else another text comes out
def ordered(members): return dict(sorted(members, key=lambda member: member[0].encode("utf-16-be", "surrogatepass")))
def jcs(x): return json.dumps(x, ensure_ascii=False, separators=(",", ":"))  # RFC 8785, of members that are in order
def read(line, place, shape):  # JSON in its one spelling, so that no two readers see two things
    hooks = {"object_pairs_hook": ordered, "parse_int": number, "parse_float": number, "parse_constant": int}
    try: demand(place, depth(value := json.loads(line.decode(), **hooks)) <= 128, "malformed")
    except (ValueError, RecursionError): demand(place, False, "malformed")
    demand(place, jcs(value).encode("utf8", "surrogatepass") == line, "not_canonical")
    demand(place, fits(shape, value) and closed(shape, value), "bad_schema")
    return value
def signed(key, message, signature):  # Ed25519, by openssl
    files = {"key": PREFIX + raw(key), "message": message, "signature": signature}
    command = "openssl pkeyutl -verify -pubin -keyform DER -inkey key -rawin -in message -sigfile signature"
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.items(): pathlib.Path(folder, name).write_bytes(data)
        return subprocess.run(command.split(), cwd=folder, capture_output=True).returncode == 0
def read_keys(records):  # by id, with the sizes each signs: the genesis names the first, a rotation the next
    keys, old = {}, ""
    for r in (r for r in records if r["kind"] in ("genesis", "key")):
        d, new = r["detail"], "new_" if r["kind"] == "key" else ""
        key, name = d.get(new + "public_key"), d.get(new + "key_id")
        text = f"evidence-key-rotation-v1\n{r['chain']}\n{r['seq']}\n{old}\n{name}\n{r['prev_hash']}\n".encode()
        sound = bool(new) == bool(keys) and fits(KEY, key) and name == sha(raw(key))[:16] and name not in keys
        if sound and new: sound = fits(HANDED, d) and d["old_key_id"] == old and all(
            signed(each, text, raw(proof)) for each, proof in ((keys[old][0], d["proof_old"]), (key, d["proof_new"])))
        demand(r["seq"], sound, "bad_rotation" if new else "bad_schema")
        if new: keys[old] = (*keys[old][:2], r["seq"] + 1)
        keys[name], old = (key, r["seq"] + 1, 10 ** 15), name
    return keys
def check_signatures(place, message, signatures, keys, size):  # by keys' ids; returns the ids that are due
    due = [name for name, (_, first, last) in keys.items() if first <= size <= last]
    for name, _ in signatures: demand(place, name in keys, "unknown_key", name in due, "key_out_of_range")
    demand(place, all(signed(keys[name][0], message, signature) for name, signature in signatures), "bad_signature")
    return sorted(due)
def check_note(place, note, keys):  # a C2SP signed note, signed by every key valid at its size and by no other
    signatures = [(name, raw(blob)[4:]) for name, blob in re.findall(r"/(\w{16}) (.*)\n", note["lines"])]
    due = check_signatures(place, note["text"].encode(), signatures, keys, int(note["size"]))
    demand(place, sorted(name for name, _ in signatures) == due, "bad_signature")
def node(left, right): return left and right and sha(b"\1" + bytes.fromhex(left + right))  # "" where one lacks
def climb(m, n, proof, leaf="", root=""):  # RFC 6962: roots of m and of n leaves, up from the m-th or the first root
    if n == 1 or m == n and not leaf:
        return [leaf or root or "".join(proof)] * 2 if len(proof) == (not leaf + root) else ["", ""]
    half, beside = 1 << (n - 1).bit_length() - 1, "".join(proof[-1:])
    old, new = climb(m - half, n - half, proof[:-1], leaf) if m > half else climb(m, half, proof[:-1], leaf, root)
    return [node(beside, old), node(beside, new)] if m > half else [old, node(new, beside)]
def hash_leaf(digest): return sha(b"\0" + bytes.fromhex(digest))
def included(seq, size, proof, digest, root): return climb(seq + 1, size, proof, hash_leaf(digest))[1] == root
def committed(due, fields):  # each field is the text that was hashed, or the hash where it is withheld
    hashes = [field if fits(HEX, field) else sha(field) for field in fields]
    digest = "sha256:" + sha(jcs(["fields-v1", hashes]))
    return hashes == sorted(set(hashes)) and due == digest or due is None and not fields
def disclosed(action, r):
    facts = (r["kind"] == "decision" and action.get("facts") or {}).get("digest")
    return committed(action.get(COMMITTED.get(r["kind"])), r["fields"]) and committed(facts, r["facts"])
def permits(given, use, action, session):  # an approval is for this action, or in scope `task` for it with other values
    task = jcs({name: action.get(name) for name in ("capability", "protocol", "target", "task", "tool")})
    bound = jcs(given.get("action")) == task
    if given.get("scope") != "task": bound = use["fingerprint"] == action["fingerprint"]
    due = (given.get("fingerprint"), given.get("session"), "consumed")
    return bound and due == (use["fingerprint"], session, use["state"])
def without_output(action): return jcs({name: value for name, value in action.items() if name != "output_digest"})
def stopped(detail): return jcs([scope := detail.get("scope", "session"), detail.get(str(scope))])  # or released
def tell(records, head, size, root):  # each record is authentic and may follow those before; what is missing or odd
    remarks, actions, given, owed, used, spent, killed, end = [], {}, {}, {}, set(), {}, set(), (0, "0" * 64)
    before = {"seq": -1, "hash": "0" * 64, "time": "", "writer": {"epoch": 0}}
    for r in records:
        seq, kind, step, settles = r["seq"], r["kind"], r["kind"] in COMMITTED, r["kind"] == "outcome"
        members = ("action", "session", "approval", "ticket")
        action, own, use, ticket = (r.get(name, {}) if step else {} for name in members)
        past, gap = actions.setdefault(action.get("id"), []), own.get("index", 0) > end[0]
        sent, decided, detail = step and r["effect"] == "dispatched", [*past, r][0], {} if step else r["detail"]
        verdict = sent and r["evaluation"]["decision"]
        demand(seq, before["seq"] < seq < size, "seq_gap", (kind == "genesis") == (seq == 0), "bad_schema",
               r["tenant"] == head["tenant"], "foreign_tenant", r["chain"] == head["chain"], "foreign_chain",
               included(seq, size, r["proof"], r["hash"], root), "bad_inclusion",
               disclosed(action, r), "bad_disclosure",
               seq > before["seq"] + 1 or r["prev_hash"] == before["hash"], "bad_prev_hash",
               r["writer"]["epoch"] >= before["writer"]["epoch"], "stale_epoch",
               not step or own["id"] == head["session"], "foreign_session",
               not step or gap or (own["index"], own["prev_hash"]) == end, "bad_session_link",
               settles or not past, "second_decision")
        who = r["principal"]["id"] if step else None
        by = ["session", own.get("id")], ["principal", who], ["tenant", None], ["gateway", None]
        demand(seq, not sent or killed.isdisjoint(map(jcs, by)), "allow_after_kill",
               not sent or verdict == "allow" or verdict == "review" and use, "dispatch_without_allow",
               not sent or use.get("id") not in used, "approval_consumed_twice",
               not (sent and use) or verdict == "review" and permits(given.get(use["id"], {}), use, action, own["id"]),
               "approval_mismatch",
               not settles or past, "outcome_without_decision",
               not settles or decided["effect"] == "dispatched", "outcome_after_block",
               not settles or len(past) == 1, "second_outcome",
               not settles or without_output(action) == without_output(decided["action"]), "outcome_mismatch")
        spends, name = "use" in ticket, detail.get("ticket", ticket.get("id"))
        last, most = spent.get(ticket.get("id"), (0, ticket.get("of", 0) * ("id" in ticket)))
        demand(seq, not spends or sent and (ticket.get("standing"), ticket.get("of")) == ("valid", most)
               and last < ticket["use"] <= most
               and (gap or "session_gap" in dict(remarks) or ticket["use"] == last + 1), "ticket_misused")
        remarks += [("time_reversed", seq)] * (r["time"] < before["time"]) + [("session_gap", seq)] * gap
        before, end, event = r, (own["index"] + 1, r["hash"]) if step else end, detail.get("event")
        if step: past.append(r); used |= {use["id"]} if sent and use else set()
        if spends or kind == "ticket" and event == "revoked": spent[name] = ticket.get("use", 0), ticket.get("of", 0)
        if kind == "approval":
            if event in ("approved", "denied", "expired"): given[detail["id"]] = detail if event == "approved" else {}
            if event == "post_mortem" or event == "approved" and "break_glass" in detail:
                owed[detail["id"]] = event, seq
        if kind == "session" and event == "killed": killed.add(stopped(detail))
        if kind == "session" and event == "released": killed.discard(stopped(detail))
    open_ones = [past[0] for past in actions.values() if len(past) == 1 and past[0]["effect"] == "dispatched"]
    remarks += [("open_outcome", r["seq"]) for r in open_ones]
    remarks += [("post_mortem_missing", seq) for event, seq in owed.values() if event == "approved"]
    return [{"reason": reason, "seq": seq} for reason, seq in sorted(remarks, key=lambda remark: remark[1])]
def stated(root, subject, shown):  # whether what is shown of a subject leads to the root of a state's map
    path, other, value, beside = sha(jcs(subject)), shown["other"], shown["value"], shown["beside"]
    bits, others = (f"{int(each, 16):0256b}"[:len(beside)] for each in [path, *other, path][:2])
    sound = not other or len(other) == 2 and not value and other[0] != path and bits == others
    leaf = [path, sha(jcs([shown["salt"], value]))] if value else other
    at = hash_leaf(sha("\n".join(leaf))) if leaf else "0" * 64
    for bit, hash in zip(bits[::-1], beside[::-1]): at = node(hash, at) if bit == "1" else node(at, hash)
    return sound and len(bits) == len(beside) and at == root
def subjects(head, records):  # the session, and its principal where an action of it is here
    acts = [r["principal"]["id"] for r in records if r["kind"] in COMMITTED]
    return [["session", head["session"]], *(["principal", name] for name in acts[-1:])]
def counted(r):  # what a state counts a record as: an event by its kind, a stop or release by its target
    if r["kind"] != "session": return r["kind"]
    stop = json.loads(stopped(r["detail"])) if r["detail"].get("event") in ("killed", "released") else [None]
    return stop[0] if stop[0] in ("tenant", "gateway") else jcs(stop)
def find_lacks(head, records, due):  # what is missing by the states, of which those that are due have to be there
    states = head.get("states", [])
    there = {(each["state"]["size"], sha(jcs(each["state"]))) for each in states}
    if not set(due) <= there: yield {"reason": "state_missing"}
    for each in states:
        before = [r for r in records if r["seq"] < each["state"]["size"]]
        names, acts = [counted(r) for r in before], [r["seq"] for r in before if r["kind"] in COMMITTED]
        end, *stops = (each["session"]["value"] + [0, 0])[:2] + (each["principal"]["value"] + [0])[:1]
        if end != (acts[-1] + 1 if acts else 0): yield {"reason": "tail_missing", "seq": max(0, end - 1)}
        numbers = [*zip(map(jcs, subjects(head, records)), stops), *each["state"]["events"].items()]
        for name in (name for name, number in numbers if names.count(name) != number):
            yield {"reason": (name if name in COUNTED and name not in ("tenant", "gateway") else "stop") + "_missing"}
def find_kept(text, head, known, keys):  # the witness's notes of this chain, and its last of this history by `known`
    notes = [(note, int(note["size"]), raw(note["root"]).hex())
             for note in re.finditer(NOTE, text) if note["chain"] == head["chain"]]
    demand("witness", notes or f"\n{ORIGIN}{head['chain']}\n" not in "\n" + text, "bad_checkpoint")
    for note, size, root in notes:
        demand("witness", size <= max(known) or note["time"] >= head["created"], "behind_witness")
        demand("witness", known.get(size, root) == root, "forked")
        if size in known: check_note("witness", note, keys)
    last = max((size for _, size, _ in notes if size <= max(known)), default=0)
    return notes, [note for note, size, _ in notes if size == last and size in known]  # others end too early
def verify(data, trusted, witness, max_age, report):  # who signed it, then each record, then what others say
    *lines, rest = data.split(b"\n")
    demand("bundle", not rest and len(lines) > 1, "malformed")
    head = read(lines[0], "line 1", HEAD)
    seal = read(lines[-1], f"line {len(lines)}", {"key_id": TEXT, "signature": SIGNATURE})
    shape = {"facts?": FIELDS, "fields": FIELDS, "proof": [HEX], "record": RECORD}
    entries = [read(line, f"line {at}", shape) for at, line in enumerate(lines[1:-1], 2)]
    records = [{**entry["record"], "facts": [], **entry, "hash": sha(jcs(entry["record"]))} for entry in entries]
    report["records"] = len(entries)
    demand("records", records and records[0]["kind"] == "genesis", "missing_record")
    keys, note = read_keys(records), re.fullmatch(NOTE, head["checkpoint"])
    demand(0, not trusted or records[0]["detail"]["public_key"] in trusted, "unknown_key")
    demand("checkpoint", note, "bad_checkpoint", note and note["chain"] == head["chain"], "foreign_chain")
    check_note("checkpoint", note, keys)
    size, root, report["head"] = int(note["size"]), raw(note["root"]).hex(), note["head"]
    sealed, signature = b"evidence-bundle-v1\n" + data[:-len(lines[-1]) - 1], (seal["key_id"], raw(seal["signature"]))
    check_signatures("seal", sealed, [signature], keys, size)
    demand("checkpoint", included(size - 1, size, head["head_proof"], note["head"], root), "head_mismatch")
    first, old, growth = (head["consistency"][name] for name in ("first", "root", "proof"))  # as a witness last saw it
    demand("consistency", 0 < first <= size and climb(first, size, growth, root=old) == [old, root], "bad_consistency")
    remarks = tell(records, head, size, root)
    report["warnings"] = [remark for remark in remarks if remark["reason"] in WARNINGS]
    for each in head.get("states", []):
        for of in subjects(head, records): demand("states", stated(each["state"]["map"], of, each[of[0]]), "bad_state")
    notes, kept = find_kept((witness or b"").decode("utf8", "replace"), head, {first: old, size: root}, keys)
    if witness is not None and not notes: report["warnings"].insert(0, {"reason": "foreign_witness"})
    due = [(int(each["size"]), each["state"]) for each in (note, *kept) if each["state"]]
    if not due: report["warnings"].insert(0, {"reason": "no_state", "seq": 0})
    for remark in remarks: demand(remark["seq"], remark["reason"] in WARNINGS, remark["reason"])
    for lack in find_lacks(head, records, due): raise Breach({"file": "states", **lack})
    oldest = "" if max_age is None else time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(max(0, time.time() - max_age)))
    demand("checkpoint", note["time"] >= oldest, "stale")
    return "witnessed" if kept and trusted else "self-attested"
def grade(reason):
    if reason in INCOMPLETE or reason.endswith("_missing"): return "incomplete"
    return "stale" if reason == "stale" else "diverged" if reason in DIVERGED else "invalid"
def judge(bundle, key=(), witness=None, max_age=None):
    report = {"verdict": None, "exit": None, "first_bad": None, "warnings": [], "records": 0, "head": None}
    try: report["verdict"] = verify(bundle, key, witness, max_age, report)
    except Breach as breach: report.update(first_bad=breach.args[0], verdict=grade(breach.args[0]["reason"]))
    return {**report, "exit": EXITS[report["verdict"]]}
if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    def content(path):
        try: return pathlib.Path(path).read_bytes()
        except OSError as error: raise argparse.ArgumentTypeError(f"expected a file: {error}")
    parser.add_argument("bundle", type=content)
    def key(text): return text if fits(KEY, text) else parser.error("--key: expected the base64 of 32 bytes")
    parser.add_argument("--key", action="append", type=key, default=[], help="first public key of the chain, base64")
    parser.add_argument("--witness", type=content, help="file with the witness's notes")
    parser.add_argument("--max-age", type=float, help="oldest checkpoint accepted, in seconds")
    sys.exit(print(json.dumps(found := judge(**vars(parser.parse_args())), indent=2)) or found["exit"])
