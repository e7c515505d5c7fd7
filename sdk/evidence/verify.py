#!/usr/bin/env python3
"""Verifies an evidence bundle with nothing but python3 and openssl; `verify` is the whole argument in its order. README.md says how to run
this, REASONS.md what each reason means. Nothing in a bundle is believed before a line here has checked it."""
import argparse, hashlib, json, pathlib, re, subprocess, sys, tempfile, time
from base64 import b64decode as raw
MANIFEST, RECORDS, FIELDS, PROOFS, CHECKPOINT = "manifest.json", "records.jsonl", "disclosures.json", "proofs.json", "checkpoint.txt"
FILES, STEPS = {"README.txt", "consistency.json", RECORDS, FIELDS, PROOFS, CHECKPOINT}, ("decision", "outcome")
EXITS = {"witnessed": 0, "self-attested": 10, "stale": 20, "diverged": 30, "invalid": 40, "incomplete": 50}
GRADES = {"stale": "stale", "diverged": "forked behind_witness", "incomplete": "missing_file missing_record session_gap open_outcome"}
# Shapes: a text is a pattern, a list says what each item is, a dict what members there are at least ("?": or are not), a tuple what
# there is to choose from, `int` is a count. Base64 has one spelling: the bits at its end that say nothing are zero.
TEXT, HEX, TIME, B64 = ".*", "[0-9a-f]{64}", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "[A-Za-z0-9+/]"
END, SIG = f"{B64}{{2}}[AEIMQUYcgkosw048]=", f"{B64}{{85}}[AQgw]=="
KEY, BASE64 = f"{B64}{{40}}{END}", f"({B64}{{4}})*({END}|{B64}[AQgw]==)?"
FRAME = {"schema": "evidence-record-v1", "chain": TEXT, "prev_hash": HEX, "seq": int, "tenant": TEXT, "time": TIME,
         "writer": {"epoch": int}}
STEP = {**FRAME, "action": {"arguments_digest": TEXT, "fingerprint": TEXT, "id": TEXT, "output_digest?": TEXT},
        "approval?": {"fingerprint": TEXT, "id": TEXT, "state": TEXT}, "session": {"id": TEXT, "index": int, "prev_hash": HEX}}
RECORD = ({**STEP, "kind": "decision", "effect": "dispatched|not_dispatched", "evaluation": {"decision": TEXT}},
          {**STEP, "kind": "outcome", "effect": "success|error|unknown"},
          {**FRAME, "kind": "approval", "detail": {"event": TEXT, "id": TEXT, "session": TEXT, "scope?": "exact|task"}},
          {**FRAME, "kind": "genesis|extension|configuration|key|session|admin|redaction|retention|heartbeat", "detail": {}})
CONTENT = {"schema": "evidence-bundle-v1", "tenant": TEXT, "chain": TEXT, "session": TEXT, "created": TIME, "files": {}}
TYPE, ORIGIN = "application/vnd.agent-governance-gateway.evidence-manifest+json", "agent-governance-gateway/evidence/"
ENVELOPE = {"payload": TEXT, "payloadType": re.escape(TYPE), "signatures": [{"keyid": TEXT, "sig": SIG}]}
NOTE = (rf"(?a)(?<![^\n])(?P<text>{ORIGIN}(?P<chain>[\w-]{{1,64}})\n(?P<size>[1-9]\d{{0,14}})\n(?P<root>{KEY})\nhead (?P<head>{HEX})\n"
        rf"time (?P<time>{TIME})\n)\n(?P<lines>(— evidence/(?P=chain)/[0-9a-f]{{16}} {B64}{{88}}{END}\n){{1,16}})")
def fits(shape, x):
    if isinstance(shape, tuple): return any(fits(each, x) for each in shape)
    if isinstance(shape, str): return isinstance(x, str) and re.fullmatch(shape, x, re.A | re.S) is not None
    if isinstance(shape, list): return isinstance(x, list) and all(fits(shape[0], item) for item in x)
    return type(x) is int and x >= 0 if shape is int else isinstance(x, dict) and all(
        fits(inner, x[name.rstrip("?")]) if name.rstrip("?") in x else name.endswith("?") for name, inner in shape.items())
class Breach(Exception): pass
def demand(place, *rules):  # pairs: what must hold, and the reason if it does not
    for reason in (reason for holds, reason in zip(rules[::2], rules[1::2]) if not holds): raise Breach(reason, *place)
def sha(data): return hashlib.sha256(data).hexdigest()
def depth(x): return 1 + max(map(depth, x.values() if isinstance(x, dict) else x), default=0) if isinstance(x, (dict, list)) else 0
def jcs(x):  # RFC 8785, of values whose only numbers are integers
    names = sorted(x, key=lambda name: name.encode("utf-16-be", "surrogatepass")) if isinstance(x, dict) else ()
    if isinstance(x, dict): return "{%s}" % ",".join(f"{jcs(name)}:{jcs(x[name])}" for name in names)
    return "[%s]" % ",".join(map(jcs, x)) if isinstance(x, list) else json.dumps(x, ensure_ascii=False)
def read(data, file, shape):  # JSON in its one spelling, so that no two readers see two things; what is no short integer differs, as null
    def integer(text): return int(text) if len(text) < 16 else None
    try:
        value = json.loads(data.decode(), parse_int=integer, parse_float=lambda text: None, parse_constant=int)
        demand((file,), depth(value) <= 128, "malformed")
    except (ValueError, RecursionError): raise Breach("malformed", file) from None
    demand((file,), jcs(value).encode("utf8", "surrogatepass") == data, "not_canonical")
    demand((file, value["seq"] if fits({"seq": int}, value) else None), fits(shape, value), "bad_schema")
    return value
def unpack(data):  # plain files in order, of nobody, from no time: what packs to these very bytes again hides nothing
    files, packed = {}, b""
    while data[len(packed):len(packed) + 1] > b"\0":
        head, rest = data[len(packed):len(packed) + 512], data[len(packed) + 512:]
        name, size = head[:100].rstrip(b"\0").decode("latin1"), head[124:135].decode("latin1")
        demand((), fits("[A-Za-z][A-Za-z0-9.-]{0,98}", name) and fits("[0-7]{11}", size) and name > max(files, default=""), "malformed")
        files[name] = rest[:int(size, 8)]
        head = f"{name:\0<100}0000644\0000000000\0000000000\0{size}\00000000000000\0        0{'':\0<100}ustar\000{'00':\0<249}".encode()
        packed += head[:148] + b"%06o\0 " % sum(head) + head[156:] + files[name] + bytes(-len(files[name]) % 512)
    demand((), packed + bytes(1024) == data, "malformed")
    return files
def signed(key, message, signature):  # Ed25519, by openssl
    with tempfile.TemporaryDirectory() as folder:
        parts = {"key": bytes.fromhex("302a300506032b6570032100") + raw(key), "message": message, "signature": signature}
        for name, data in parts.items(): pathlib.Path(folder, name).write_bytes(data)
        command = "openssl pkeyutl -verify -pubin -keyform DER -inkey key -rawin -in message -sigfile signature"
        return subprocess.run(command.split(), cwd=folder, capture_output=True).returncode == 0
def valid(keys, size): return [key_id for key_id, (_, first, last) in keys.items() if first <= size <= last]
def key_at(keys, key_id, size, file):
    demand((file,), key_id in keys, "unknown_key", key_id in valid(keys, size), "key_out_of_range")
    return keys[key_id][0]
def read_keys(records, trusted):  # by id, with the sizes each signs: the genesis names the first, each rotation the next, signed by both
    demand((RECORDS,), records and records[0]["kind"] == "genesis", "missing_record")
    keys, old = {}, None
    for r in (r for r in records if r["kind"] in ("genesis", "key")):
        d, new, sound = r["detail"], "new_" if keys else "", False
        key, key_id = d.get(new + "public_key"), d.get(new + "key_id")
        if fits(KEY, key) and key_id == sha(raw(key))[:16] and key_id not in keys:
            text = f"evidence-key-rotation-v1\n{r['chain']}\n{r['seq']}\n{old}\n{key_id}\n{r['prev_hash']}\n".encode()
            sound = not keys or fits({"event": "rotated", "old_key_id": old, "proof_new": SIG, "proof_old": SIG}, d) and signed(
                keys[old][0], text, raw(d["proof_old"])) and signed(key, text, raw(d["proof_new"]))
        demand((RECORDS, r["seq"]), sound, "bad_rotation" if keys else "bad_schema")
        keys.update({old: (keys[old][0], keys[old][1], r["seq"] + 1)} if keys else {})
        keys[key_id], old = (key, r["seq"] + 1, 10 ** 15), key_id
    demand((RECORDS, 0), not trusted or [*keys.values()][0][0] in trusted, "unknown_key")
    return keys
def check_note(note, chain, keys, file):  # a C2SP signed note, signed by every key valid at its size and by no other
    demand((file,), note, "bad_checkpoint", note and note["chain"] == chain, "foreign_chain")
    lines, size = [line.split(" ")[1:] for line in note["lines"].splitlines()], int(note["size"])
    found = [(raw(blob), key_at(keys, name[-16:], size, file), name) for name, blob in lines]
    sound = all(blob[:4].hex() == sha(name.encode() + b"\n\1" + raw(key))[:8] and signed(key, note["text"].encode(), blob[4:])
                for blob, key, name in found)
    demand((file,), sound and len(dict(lines)) == len(lines) == len(valid(keys, size)), "bad_signature")
    return size, raw(note["root"]).hex()
def climb(m, n, proof, leaf="", root=""):  # RFC 6962: the roots of the first m and of all n leaves, up from the m-th or from the first root
    def node(left, right): return sha(b"\1" + bytes.fromhex(left + right))
    if n == 1 or m == n and not leaf: return [leaf or root or "".join(proof)] * 2 if len(proof) == (not leaf + root) else ["", ""]
    half, beside = 1 << (n - 1).bit_length() - 1, "".join(proof[-1:])
    old, new = climb(m - half, n - half, proof[:-1], leaf) if m > half else climb(m, half, proof[:-1], leaf, root)
    return [node(beside, old), node(beside, new)] if m > half else [old, node(new, beside)]
def read_records(data, m):
    demand((RECORDS,), data.endswith(b"\n") or not data, "malformed")
    records, last = [], -1
    for line in data.split(b"\n")[:-1]:
        r = {**read(line, RECORDS, RECORD), "hash": sha(line)}
        demand((RECORDS, r["seq"]), (r["kind"] == "genesis") == (r["seq"] == 0), "bad_schema", r["seq"] > last, "seq_gap",
               r["tenant"] == m["tenant"], "foreign_tenant", r["chain"] == m["chain"], "foreign_chain")
        last = records.append(r) or r["seq"]
    return records
def check_inclusion(records, size, head, root, proofs):  # every record, and the head, is a leaf of the signed tree at its own number
    for seq, digest, place, reason in [(r["seq"], r["hash"], (RECORDS, r["seq"]), "bad_inclusion") for r in records] + [
            (size - 1, head, (None, size - 1), "head_mismatch")]:
        demand(place, seq < size, "seq_gap", fits([HEX], proofs.get(str(seq))), reason)
        demand(place, climb(seq + 1, size, proofs[str(seq)], sha(b"\0" + bytes.fromhex(digest)))[1] == root, reason)
    demand((PROOFS,), set(proofs) == {str(seq) for seq in [size - 1, *(r["seq"] for r in records)]}, "bad_inclusion")
def permits(given, r):  # whether an approval is for this use of it: for this very action, or in scope `task` with other values
    use, action, names = r["approval"], r["action"], ("capability", "protocol", "target", "task", "tool")
    mine = given and (given["event"], given["session"], given.get("fingerprint"), use["state"]) == (
        "approved", r["session"]["id"], use["fingerprint"], "consumed")
    if mine and given.get("scope") == "task": return jcs(given.get("action")) == jcs({name: action.get(name) for name in names})
    return mine and use["fingerprint"] == action["fingerprint"]
def tell(records, session):  # what records may say after one another; returns what is missing, and what is odd
    missing, odd, decided, pending, events, used, owed, killed = [], [], {}, {}, {}, set(), {}, False
    end, start = (-1, "0" * 64), {"seq": -1, "hash": "0" * 64, "time": "", "writer": {"epoch": 0}}
    for before, r in zip([start, *records], records):
        place, kind, detail, action, use = (RECORDS, r["seq"]), r["kind"], r.get("detail"), r.get("action"), r.get("approval")
        demand(place, r["seq"] > before["seq"] + 1 or r["prev_hash"] == before["hash"], "bad_prev_hash",
               r["writer"]["epoch"] >= before["writer"]["epoch"], "stale_epoch")
        odd += [("time_reversed", r["seq"])] * (r["time"] < before["time"])
        if kind in STEPS:
            own, past = r["session"], decided.get(action["id"])
            gap, follows = own["index"] > end[0] + 1, (own["index"], own["prev_hash"]) == (end[0] + 1, end[1])
            demand(place, own["id"] == session, "foreign_session", gap or follows, "bad_session_link")
            missing, end = missing + [("session_gap", r["seq"])] * gap, (own["index"], r["hash"])
        if kind == "decision":
            demand(place, not past, "second_decision")
            decided[action["id"]] = r
        if kind == "decision" and r["effect"] == "dispatched":
            verdict, pending[action["id"]] = r["evaluation"]["decision"], r["seq"]
            demand(place, not killed, "allow_after_kill", verdict == "allow" or verdict == "review" and use, "dispatch_without_allow",
                   not use or use["id"] not in used, "approval_consumed_twice",
                   not use or verdict == "review" and permits(events.get(use["id"]), r), "approval_mismatch")
            used |= {use["id"]} if use else set()
        if kind == "outcome":
            same = past and jcs({**past["action"], "output_digest": 0}) == jcs({**action, "output_digest": 0})
            demand(place, past, "outcome_without_decision", past and past["effect"] == "dispatched", "outcome_after_block",
                   pending.pop(action["id"], None) is not None, "second_outcome", same, "outcome_mismatch")
        if kind == "approval" and detail["event"] in ("approved", "denied", "expired"): events[detail["id"]] = detail
        if kind == "approval" and detail["event"] == "approved" and "break_glass" in detail: owed[detail["id"]] = r["seq"]
        if kind == "approval" and detail["event"] == "post_mortem": owed.pop(detail["id"], None)
        if kind == "session" and detail.get("session") == session and detail.get("event") in ("killed", "released"):
            killed = detail["event"] == "killed"
    found = missing + [("open_outcome", seq) for seq in pending.values()], odd + [("post_mortem_missing", seq) for seq in owed.values()]
    return [[{"reason": reason, "seq": seq} for reason, seq in sorted(each, key=lambda pair: pair[1])] for each in found]
def check_fields(actions, shown):  # a field is the text that was hashed, or the hash where it is withheld; together they make the digest
    due = {action[name] for action in actions for name in ("arguments_digest", "output_digest") if name in action}
    demand((FIELDS,), set(shown) == due and all(fits([HEX + r'|\["field-v1",.*'], fields) for fields in shown.values()), "bad_disclosure")
    for digest, fields in shown.items():
        hashes = [field if fits(HEX, field) else sha(field.encode()) for field in fields]
        whole = digest == "sha256:" + sha(jcs(["fields-v1", hashes]).encode()) and hashes == sorted(set(hashes))
        demand((FIELDS,), whole, "bad_disclosure")
def is_kept(text, m, known, keys):  # whether the witness kept this very history; `known`: the roots of the sizes that the bundle proves
    notes, kept = [note for note in re.finditer(NOTE, text) if note["chain"] == m["chain"]], False
    demand(("witness",), notes or f"\n{ORIGIN}{m['chain']}\n" not in "\n" + text, "bad_checkpoint")
    for note in notes:
        demand(("witness",), int(note["size"]) <= max(known) or note["time"] >= m["created"], "behind_witness")
        if int(note["size"]) in known:
            try: kept = check_note(note, m["chain"], keys, "witness")[1] == known[int(note["size"])]
            except Breach: kept = False
            demand(("witness",), kept, "forked")
    return kept
def verify(data, trusted, witness, max_age, report):  # what is authentic comes first, what it means after, what is missing last
    files = unpack(data)
    demand((MANIFEST,), MANIFEST in files, "missing_file")
    envelope = read(files[MANIFEST], MANIFEST, ENVELOPE)
    demand((MANIFEST,), len(envelope["signatures"]) == 1, "bad_schema", fits(BASE64, envelope["payload"]), "malformed")
    payload, signature = raw(envelope["payload"]), envelope["signatures"][0]
    m = read(payload, MANIFEST, CONTENT)
    for name in sorted((FILES | set(m["files"]) | set(files)) - {MANIFEST}):
        demand((name,), name in files, "missing_file", name in FILES and name in m["files"], "unlisted_file",
               sha(files.get(name, b"")) == m["files"].get(name), "manifest_mismatch")
    records = read_records(files[RECORDS], m)
    report["records"] = len(records)
    keys = read_keys(records, trusted)
    note = re.fullmatch(NOTE, files[CHECKPOINT].decode("utf8", "replace"))
    size, root = check_note(note, m["chain"], keys, CHECKPOINT)
    report["head"] = note["head"]
    message = f"DSSEv1 {len(TYPE)} {TYPE} {len(payload)} ".encode() + payload  # lengths: neither part can pass for the other
    demand((MANIFEST,), signed(key_at(keys, signature["keyid"], size, MANIFEST), message, raw(signature["sig"])), "bad_signature")
    check_inclusion(records, size, note["head"], root, read(files[PROOFS], PROOFS, {}))
    missing, report["warnings"] = tell(records, m["session"])
    check_fields([r["action"] for r in records if r["kind"] in STEPS], read(files[FIELDS], FIELDS, {}))
    growth = read(files["consistency.json"], "consistency.json", {"first": int, "root": HEX, "proof": [HEX]})
    first, old = growth["first"], growth["root"]  # the tree as a witness last saw it: this one began like it
    sound = 0 < first <= size and climb(first, size, growth["proof"], root=old) == [old, root]
    demand(("consistency.json",), sound, "bad_consistency")
    kept = witness is not None and is_kept(witness, m, {first: old, size: root}, keys)
    for gap in missing: raise Breach(gap["reason"], RECORDS, gap["seq"])
    oldest = "" if max_age is None else time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(max(0, time.time() - max_age)))
    demand((CHECKPOINT,), note["time"] >= oldest, "stale")
    return "witnessed" if kept and trusted else "self-attested"
def judge(data, trusted=(), witness=None, max_age=None):
    report = {"verdict": None, "exit": None, "first_bad": None, "warnings": [], "records": 0, "head": None}
    try: report["verdict"] = verify(data, trusted, witness, max_age, report)
    except Breach as breach:
        report["first_bad"] = {name: value for name, value in zip(("reason", "file", "seq"), breach.args) if value is not None}
        report["verdict"] = next((verdict for verdict, reasons in GRADES.items() if breach.args[0] in reasons.split()), "invalid")
    return {**report, "exit": EXITS[report["verdict"]]}
if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bundle")
    parser.add_argument("--key", action="append", default=[], help="first public key of the chain, base64, from the operator")
    parser.add_argument("--witness", help="file with the witness's notes")
    parser.add_argument("--max-age", type=float, help="oldest checkpoint accepted, in seconds")
    options = parser.parse_args()
    notes = options.witness and pathlib.Path(options.witness).read_bytes().decode("utf8", "replace")
    found = judge(pathlib.Path(options.bundle).read_bytes(), options.key, notes, options.max_age)
    print(json.dumps(found, indent=2))
    sys.exit(found["exit"])
