#!/usr/bin/env python3
"""Verifies an evidence bundle with nothing but python3 and openssl. README.md says how, REASONS.md what may be wrong."""
import argparse, base64, calendar, decimal, hashlib, json, re, subprocess, sys, tempfile, time
MANIFEST, RECORDS, FIELDS, WITNESS = "manifest.json", "records.jsonl", "disclosures.json", ("consistency.json", "witness.txt")
FILES = {"README.txt", "checkpoint.txt", FIELDS, "proofs.json", "provenance.json", RECORDS}
TYPE = "application/vnd.agent-governance-gateway.evidence-manifest+json"
TEXT, HEX, KEY, SIG = "(?s).*", "[0-9a-f]{64}", "[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=", "[A-Za-z0-9+/]{85}[AQgw]=="
ORIGIN, TIME = "agent-governance-gateway/evidence/", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
NOTE = (rf"({ORIGIN}([\w-]{{1,64}})\n([1-9]\d{{0,15}})\n({KEY})\nhead ({HEX})\ntime ({TIME})\n)\n"
        r"((?:— [^\s+]{1,256} [A-Za-z0-9+/]{90}[AEIMQUYcgkosw048]=\n){1,16})")
EFFECTS = {"decision": ("dispatched", "not_dispatched"), "outcome": ("success", "error", "unknown"), **dict.fromkeys(
    "genesis approval extension configuration key session admin redaction retention heartbeat".split(), (None,))}
EXITS = {"witnessed": 0, "self-attested": 10, "stale": 20, "diverged": 30, "invalid": 40, "incomplete": 50}
GRADES = {**dict.fromkeys("missing_file missing_record session_gap open_outcome".split(), "incomplete"), "stale": "stale",
          "behind_witness": "diverged", "forked": "diverged"}  # every other reason is invalid
class Breach(Exception): pass
def demand(place, *rules):  # pairs: what must hold, and the reason if it does not
    for holds, reason in zip(rules[::2], rules[1::2]):
        if not holds: raise Breach(reason, *place)
def sha(data): return hashlib.sha256(data).digest()
def count(x): return type(x) is float and x.is_integer() and 0 <= x < 2 ** 53
def fits(pattern, *texts): return all(isinstance(text, str) and re.fullmatch(pattern, text, re.A) for text in texts)
def jcs(x, depth=0):  # RFC 8785
    if depth == 128 and isinstance(x, (dict, list)): raise RecursionError
    if isinstance(x, list): return "[%s]" % ",".join(jcs(item, depth + 1) for item in x)
    if isinstance(x, dict): return "{%s}" % ",".join(jcs(key) + ":" + jcs(x[key], depth + 1) for key in sorted(
        x, key=lambda key: key.encode("utf-16-be", "surrogatepass")))
    if type(x) is not float or abs(x) == float("inf"): return json.dumps(x, ensure_ascii=False)
    sign, digits, exponent = decimal.Decimal(repr(x)).normalize().as_tuple()  # a number as ECMAScript prints it
    s, n = "".join(map(str, digits)), len(digits) + exponent
    if not -6 < n <= 21: s = s[0] + "." * (len(s) > 1) + s[1:] + "e%+d" % (n - 1)
    else: s = "0." + "0" * -n + s if n <= 0 else (s + "0" * 21)[:n] + "." * (len(s) > n) + s[n:]
    return "-" * sign + s if x else "0"
def read(data, file):  # JSON in its one spelling
    try:
        value = json.loads(data.decode(), parse_int=float, parse_constant=lambda name: json.loads(""))
        text = jcs(value).encode("utf8", "surrogatepass")
    except (ValueError, RecursionError): raise Breach("malformed", file) from None
    seq = value.get("seq") if isinstance(value, dict) and count(value.get("seq")) else None
    demand((file, seq), text == data, "not_canonical", isinstance(value, dict), "bad_schema")
    return value
def signed(key, message, signature):
    with tempfile.TemporaryDirectory() as folder:
        for name, data in ("k", bytes.fromhex("302a300506032b6570032100") + key), ("m", message), ("s", signature):
            with open(f"{folder}/{name}", "wb") as file: file.write(data)
        command = "openssl pkeyutl -verify -pubin -keyform DER -inkey k -rawin -in m -sigfile s"
        return subprocess.run(command.split(), cwd=folder, capture_output=True).returncode == 0
def pack(name, data):  # the one form of an entry: no links, folders, owners or times
    head = (name.encode().ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2 + b"%011o\0" % len(data) + b"0" * 11 + b"\0"
            + b" " * 8 + b"0" + bytes(100) + b"ustar\x0000").ljust(512, b"\0")
    return head[:148] + b"%06o\0 " % sum(head) + head[156:] + data + bytes(-len(data) % 512)
def unpack(data):
    files, at = {}, 0
    while data[at:at + 1] not in (b"", b"\0"):
        name, size = data[at:at + 100].rstrip(b"\0").decode("latin1"), data[at + 124:at + 135].decode("latin1")
        demand((), fits("[A-Za-z][A-Za-z0-9.-]*", name) and fits("[0-7]{11}", size), "malformed")
        files[name] = data[at + 512:at + 512 + int(size, 8)]
        at += len(pack(name, files[name]))
    demand((), b"".join(pack(*file) for file in sorted(files.items())) + bytes(1024) == data, "malformed")
    return files
def lead(m, n, proof, seed, to_leaf):  # RFC 6962: the roots of the first m and of all n leaves that a proof leads to
    if n == 1 or m == n and not to_leaf: return [seed or bytes.fromhex(proof[0])] * 2 if len(proof) == (not seed) else [b""] * 2
    if not proof: return [b""] * 2
    half, beside = 1 << (n - 1).bit_length() - 1, bytes.fromhex(proof[-1])
    old, new = lead(*((m, half) if m <= half else (m - half, n - half)), proof[:-1], seed if to_leaf or m <= half else None, to_leaf)
    return [old, sha(b"\1" + new + beside)] if m <= half else [sha(b"\1" + beside + each) for each in (old, new)]
def roots(m, n, proof, seed, to_leaf): return lead(m, n, proof, seed, to_leaf) if isinstance(proof, list) and fits(HEX, *proof) else [b""] * 2
def raw(text): return base64.b64decode(text)
def valid(keys, size): return [key for key in keys if key["from_size"] <= size <= (key["to_size"] or size)]
def key_at(keys, key_id, size, file):
    ids, at_size = ([key["key_id"] for key in some] for some in (keys, valid(keys, size)))
    demand((file,), key_id in ids, "unknown_key", key_id in at_size, "key_out_of_range")
    return raw(keys[ids.index(key_id)]["public_key"])
def read_keys(records, trusted):  # the genesis names the first key, each rotation the next; an old key signs up to it
    demand((RECORDS,), records and records[0]["kind"] == "genesis", "missing_record")
    keys = []
    for r in (r for r in records if r["kind"] in ("genesis", "key")):
        old, new, d = keys[-1] if keys else {"key_id": None}, "new_" * bool(keys), r["detail"]
        key, key_id, handed = d.get(new + "public_key"), d.get(new + "key_id"), (d.get("event"), d.get("old_key_id"))
        text = f"evidence-key-rotation-v1\n{r['chain']}\n{r['seq']:.0f}\n{old['key_id']}\n{key_id}\n{r['prev_hash']}\n".encode()
        sound = fits(KEY, key) and key_id == sha(raw(key)).hex()[:16] and (not keys or handed == ("rotated", old["key_id"]))
        for signer, proof in ((old["public_key"], "proof_old"), (key, "proof_new")) if keys and sound else ():
            sound = sound and fits(SIG, d.get(proof)) and signed(raw(signer), text, raw(d[proof]))
        demand((RECORDS, r["seq"]), sound, "bad_rotation" if keys else "bad_schema")
        old["to_size"] = r["seq"] + 1
        keys.append({"from_size": r["seq"] + 1, "key_id": key_id, "public_key": key, "to_size": None})
    demand((RECORDS, 0), not trusted or keys[0]["public_key"] in trusted, "unknown_key")
    return keys
def read_note(text, chain, keys, file):  # a C2SP signed note, signed by every key valid at its size and by no other
    found = re.fullmatch(NOTE, text, re.A)
    demand((file,), found, "bad_checkpoint", found and found[2] == chain, "foreign_chain")
    size, lines, name = int(found[3]), [line.split(" ") for line in found[7].splitlines()], f"evidence/{chain}/"
    for _, signer, blob in lines:
        key, blob = key_at(keys, signer.removeprefix(name), size, file), raw(blob)
        hint = sha(f"{name}{sha(key).hex()[:16]}\n\1".encode() + key)[:4]
        demand((file,), blob[:4] == hint and signed(key, found[1].encode(), blob[4:]), "bad_signature")
    demand((file,), len({signer for _, signer, _ in lines}) == len(lines) == len(valid(keys, size)), "bad_signature")
    return {"size": size, "root": raw(found[4]), "head": found[5], "time": found[6]}
def read_records(data, manifest):
    demand((RECORDS,), data.endswith(b"\n") or not data, "malformed")
    records = []
    for line in data.split(b"\n")[:-1]:
        r = {**read(line, RECORDS), "hash": sha(line).hex()}
        last, seq, kind = records[-1]["seq"] if records else -1, r.get("seq"), r.get("kind")
        sound = r.get("schema") == "evidence-record-v1" and count(seq) and r.get("effect") in EFFECTS.get(kind, ()) and (kind == "genesis") == (seq == 0)
        demand((RECORDS, seq if count(seq) else None), sound and is_record(r), "bad_schema", seq > last, "seq_gap",
               r["tenant"] == manifest["tenant"], "foreign_tenant", r["chain"] == manifest["chain"], "foreign_chain")
        records.append(r)
    return records
def permits(given, r):  # whether an approval is for this use of it: this very action, or in scope `task` the same with other values
    use, action, names = r["approval"], r["action"], ("capability", "protocol", "target", "task", "tool")
    if given is None or given["event"] != "approved" or use["state"] != "consumed": return False
    if given["session"] != r["session"]["id"] or given.get("fingerprint") != use["fingerprint"]: return False
    if given.get("scope") == "task": return jcs(given.get("action")) == jcs({name: action.get(name) for name in names})
    return use["fingerprint"] == action["fingerprint"]
def tell(records, session):  # what records may say after one another
    gaps, actions, approved, used, owed, killed = [], {}, {}, set(), {}, False
    before, end = {"seq": -1, "hash": "0" * 64, "writer": {"epoch": 0}}, (-1, "0" * 64)
    for r in records:
        place, own, action, detail = (RECORDS, r["seq"]), r.get("session"), r.get("action"), r.get("detail", {})
        demand(place, r["seq"] > before["seq"] + 1 or r["prev_hash"] == before["hash"], "bad_prev_hash",
               r["writer"]["epoch"] >= before["writer"]["epoch"], "stale_epoch")
        if action:
            past, is_gap = actions.setdefault(action["id"], {}), own["index"] > end[0] + 1
            follows = (own["index"], own["prev_hash"]) == (end[0] + 1, end[1])
            demand(place, own["id"] == session, "foreign_session", is_gap or follows, "bad_session_link")
            gaps += [(r["seq"], "session_gap")] * is_gap
            end = own["index"], r["hash"]
        if r["kind"] == "decision":
            demand(place, not past, "second_decision")
            past.update(r)
        if r.get("effect") == "dispatched":
            verdict, use = r["evaluation"]["decision"], r.get("approval")
            demand(place, not killed, "allow_after_kill", verdict == "allow" or verdict == "review" and use, "dispatch_without_allow",
                   not use or use["id"] not in used, "approval_consumed_twice",
                   not use or verdict == "review" and permits(approved.get(use["id"]), r), "approval_mismatch")
            used |= {use["id"]} if use else set()
        if r["kind"] == "outcome":
            same = {**past.get("action", action), "output_digest": 0} == {**action, "output_digest": 0}
            demand(place, past, "outcome_without_decision", past.get("effect") == "dispatched", "outcome_after_block",
                   "settled" not in past, "second_outcome", same, "outcome_mismatch")
            past["settled"] = True
        if r["kind"] == "approval" and detail["event"] in ("approved", "denied", "expired"):
            approved[detail["id"]] = detail
            if "break_glass" in detail and detail["event"] == "approved": owed[detail["id"]] = r["seq"]
        if r["kind"] == "approval" and detail["event"] == "post_mortem": owed.pop(detail["id"], None)
        if r["kind"] == "session" and detail.get("session") == session:
            killed = {"killed": True, "released": False}.get(detail.get("event"), killed)
        before = r
    gaps += [(a["seq"], "open_outcome") for a in actions.values() if a["effect"] == "dispatched" and "settled" not in a]
    return gaps, [(seq, "post_mortem_missing") for seq in owed.values()]
def check_fields(records, disclosures, stated):
    withheld = []
    for r in (r for r in records if "action" in r):
        digests = {"arguments": r["action"]["arguments_digest"]} if r["kind"] == "decision" else {}
        digests |= {"output": r["action"]["output_digest"]} if "output_digest" in r["action"] else {}
        entry, place = disclosures.pop(f"{r['seq']:.0f}", {}), (FIELDS, r["seq"])
        demand(place, isinstance(entry, dict) and list(entry) == list(digests), "bad_disclosure")
        for member, fields in entry.items():
            demand(place, isinstance(fields, list) and all(is_field(field) for field in fields), "bad_disclosure")
            listed = [field["commitment"] for field in fields]
            digest = "sha256:" + sha(jcs(["fields-v1", listed]).encode()).hex()
            demand(place, listed == sorted(set(listed)) and digest == digests[member], "bad_disclosure")
            hidden = sum(len(field) == 1 for field in fields)
            withheld += [{"count": hidden, "member": member, "seq": r["seq"]}] * bool(hidden)
    demand((FIELDS,), not disclosures, "bad_disclosure")
    demand((MANIFEST,), withheld == stated, "manifest_mismatch")
def is_field(f):  # disclosed whole, or not at all
    if not isinstance(f, dict) or not fits(HEX, f.get("commitment")): return False
    whole = list(f) == ["commitment", "name", "salt", "value"] and fits(TEXT, f["name"], f["salt"])
    return len(f) == 1 or whole and sha(jcs(["field-v1", f["salt"], f["name"], f["value"]]).encode()).hex() == f["commitment"]
def is_record(r):
    def policies(e): return isinstance(e["policies"], list) and isinstance(e["shadow"], list) and e["policies"] + e["shadow"]
    try:
        texts, e = [r["tenant"], r["chain"], r["config_digest"], r["id"], r["salt"]], r.get("evaluation")
        if e is not None or r["kind"] == "decision":
            texts += [e["decision"], *(p[k] for p in policies(e) for k in ("digest", "kind", "name", "version"))]
            texts += [p["signer"] or "" for p in policies(e)]
        if r["kind"] == "approval": texts += [*map(r["detail"].get, ("event", "id", "session")), r["detail"].get("scope", "exact")]
        if r["kind"] == "approval" and r["detail"].get("scope", "exact") not in ("exact", "task"): return False
        if r["kind"] not in ("decision", "outcome"): return isinstance(r["detail"], dict) and fits(TEXT, *texts)
        texts += [r["action"][k] for k in ("arguments_digest", "fingerprint", "id")] + [r["action"].get("output_digest", "")]
        texts += [r["session"]["id"], *(r["approval"][k] for k in ("fingerprint", "id", "state") if "approval" in r)]
        hashes = fits(HEX, r["prev_hash"], r["session"]["prev_hash"]) and fits(TIME, r["time"])
        return hashes and fits(TEXT, *texts) and count(r["session"]["index"]) and count(r["writer"]["epoch"])
    except (KeyError, TypeError, AttributeError): return False
def check_witness(text, manifest, known, keys):
    kept, unread = False, f"\n{ORIGIN}{manifest['chain']}\n" in "\n" + text
    for part in re.split(r"\n#[^\n]*\n", "\n" + text):
        note = part.removeprefix("\n").removesuffix("\n") + "\n"
        if not note.startswith(f"{ORIGIN}{manifest['chain']}\n"): continue
        found = re.fullmatch(NOTE, note, re.A)
        unread = unread and not found
        if not found: continue  # a crash cut it off
        seen_later = int(found[3]) > manifest["size"] and found[6] < manifest["created"]
        demand(("witness",), not seen_later, "behind_witness")
        for ours in (ours for ours in known if ours["size"] == int(found[3])):
            try: kept = read_note(note, manifest["chain"], keys, "witness") == ours
            except Breach: kept = False
            demand(("witness",), kept, "forked")
    demand(("witness",), not unread, "bad_checkpoint")
    return kept
def verify(data, options, report):
    files = unpack(data)
    demand((MANIFEST,), MANIFEST in files, "missing_file")
    envelope = read(files[MANIFEST], MANIFEST)
    signatures = envelope.get("signatures")
    sound = envelope.get("payloadType") == TYPE and isinstance(signatures, list) and len(signatures) == 1
    demand((MANIFEST,), sound and fits(TEXT, envelope.get("payload"), signatures[0].get("keyid")) and fits(SIG, signatures[0].get("sig")), "bad_schema")
    try: payload = base64.b64decode(envelope["payload"])
    except ValueError: payload = b""
    demand((MANIFEST,), base64.b64encode(payload).decode() == envelope["payload"], "malformed")
    m = read(payload, MANIFEST)
    sound = m.get("schema") == "evidence-bundle-v1" and fits(TEXT, m.get("tenant"), m.get("chain"), m.get("session"))
    sound = sound and fits(HEX, m.get("root")) and fits(TIME, m.get("created")) and isinstance(m.get("files"), dict)
    demand((MANIFEST,), sound and count(m.get("size")) and m["size"] > 0, "bad_schema")
    present = set(files) | set(m["files"])
    known = FILES | set(WITNESS if present & set(WITNESS) else ())
    for name in sorted((present | known) - {MANIFEST}):
        demand((name,), name in files, "missing_file", name in m["files"] and name in known, "unlisted_file",
               sha(files.get(name, b"")).hex() == m["files"].get(name), "manifest_mismatch")
    records = read_records(files[RECORDS], m)
    keys = read_keys(records, options.key)
    key = key_at(keys, signatures[0]["keyid"], m["size"], MANIFEST)
    message = f"DSSEv1 {len(TYPE)} {TYPE} {len(payload)} ".encode() + payload
    demand((MANIFEST,), signed(key, message, raw(signatures[0]["sig"])), "bad_signature", keys == m.get("public_keys"), "manifest_mismatch")
    def note(file):
        try: return read_note(files[file].decode(), m["chain"], keys, file)
        except UnicodeDecodeError: raise Breach("malformed", file) from None
    point, proofs = note("checkpoint.txt"), read(files["proofs.json"], "proofs.json")
    report.update(records=len(records), head=point["head"])
    demand((MANIFEST,), (point["size"], point["root"].hex()) == (m["size"], m["root"]), "manifest_mismatch")
    def included(digest, seq): return roots(seq + 1, point["size"], proofs.get(str(seq)), sha(b"\0" + bytes.fromhex(digest)), True)[1] == point["root"]
    for r in records:
        demand((RECORDS, r["seq"]), r["seq"] < point["size"], "seq_gap", r["seq"] >= point["size"] or included(r["hash"], int(r["seq"])), "bad_inclusion")
    demand((None, point["size"] - 1), included(point["head"], point["size"] - 1), "head_mismatch")
    proven = {f"{r['seq']:.0f}" for r in records} | {str(point["size"] - 1)}
    demand(("proofs.json",), proven == set(proofs), "bad_inclusion")
    gaps, odd = tell(records, m["session"])
    odd = [(r["seq"], "time_reversed") for before, r in zip(records, records[1:]) if r["time"] < before["time"]] + odd
    report["warnings"] = [{"reason": reason, "seq": int(seq)} for seq, reason in sorted(odd, key=lambda each: each[0])]
    check_fields(records, read(files[FIELDS], FIELDS), m.get("redacted"))
    evaluations = [r["evaluation"] for r in records if "evaluation" in r]
    used = {jcs({**{k: p[k] for k in ("digest", "kind", "name", "signer", "version")}, "trust": "signed" if p["signer"] is not None else "unsigned"})
            for e in evaluations for p in e["policies"] + e["shadow"]}
    read(files["provenance.json"], "provenance.json")
    demand(("provenance.json",), files["provenance.json"].decode() == '{"extensions":[%s]}' % ",".join(sorted(used)), "provenance_mismatch")
    known = [point]
    if "witness.txt" in files:
        known.append(note("witness.txt"))
        c, first = read(files["consistency.json"], "consistency.json"), known[1]["size"]
        demand(("consistency.json",), count(c.get("first")) and count(c.get("second")), "bad_schema", (c.get("first"), c.get("second")) == (first, point["size"]), "bad_consistency",
               first <= point["size"] and roots(first, point["size"], c.get("proof"), known[1]["root"], False) == [known[1]["root"], point["root"]], "bad_consistency")
    kept = check_witness(open(options.witness, encoding="utf8", newline="").read(), m, known, keys) if options.witness else False
    for seq, reason in sorted(gaps, key=lambda each: each[0]): raise Breach(reason, RECORDS, seq)
    age = time.time() - calendar.timegm(time.strptime(point["time"][:19], "%Y-%m-%dT%H:%M:%S"))
    demand(("checkpoint.txt",), options.max_age is None or age <= options.max_age, "stale")
    return "witnessed" if kept and options.key else "self-attested"
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("bundle")
parser.add_argument("--key", action="append", default=[], help="first public key of the chain, base64, from the operator")
parser.add_argument("--witness", help="file with the witness's notes")
parser.add_argument("--max-age", type=float, help="oldest checkpoint accepted, in seconds")
options, report = parser.parse_args(), {"first_bad": None, "warnings": [], "records": 0, "head": None}
try: report["verdict"] = verify(open(options.bundle, "rb").read(), options, report)
except Breach as breach:
    reason, file, seq = (*breach.args, None, None)[:3]
    report["first_bad"] = {"reason": reason, **({"file": file} if file else {}), **({} if seq is None else {"seq": int(seq)})}
    report["verdict"] = GRADES.get(reason, "invalid")
print(json.dumps({**report, "exit": EXITS[report["verdict"]]}, indent=2))
sys.exit(EXITS[report["verdict"]])
