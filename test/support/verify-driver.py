"""Judges bundles one after another with the verifier named first: a path and its circumstances a line, as JSON; a report a line."""
import functools, importlib.util, json, sys

spec = importlib.util.spec_from_file_location("verify", sys.argv[1])
verifier = importlib.util.module_from_spec(spec)
spec.loader.exec_module(verifier)
verifier.signed = functools.cache(verifier.signed)  # openssl is started once for each signature, not once for each bundle
for line in sys.stdin:
    asked = json.loads(line)
    witness = None if asked["witness"] is None else asked["witness"].encode("utf8", "surrogatepass")
    with open(asked["bundle"], "rb") as bundle:
        print(json.dumps(verifier.judge(bundle.read(), asked["keys"], witness)), flush=True)
