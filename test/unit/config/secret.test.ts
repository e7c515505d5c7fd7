import { expect } from "chai";
import { contentDigest } from "../../../core/action/canonical-json.ts";
import { faultsOf, hashA, loadText } from "./fixture.ts";

const key = "keys:\n  - {id: a, tenant: t, role: admin, key_env: THE_KEY}\n";
const header = "upstreams:\n  - {name: a, transport: http, url: 'https://a.example', headers_env: {X-A: THE_HEADER}}\n";
const copied = "upstreams:\n  - {name: a, transport: stdio, command: run, env_from: [THE_VARIABLE]}\n";

const keyFault =
  "gateway.yaml:2:46: keys[0].key_env: expected environment variable `THE_KEY` to hold a key of 32 to 512 of `A-Z a-z 0-9 . _ ~ + / = -`, got";

describe("readSecrets(draft, env, faults)", () => {
  it("hashes a key from the environment and keeps the hash alone", async () => {
    const secret = "A-Za-z0-9._~+/=-".repeat(2);
    const config = await loadText(key, { THE_KEY: secret });
    expect(config.keys).to.deep.equal([{ id: "a", tenant: "t", role: "admin", keyHash: contentDigest(secret) }]);
    expect(JSON.stringify(config)).to.not.include(secret);
  });

  describe("when the key in the environment is unfit", () => {
    const table: [string, string | undefined, string][] = [
      ["missing", undefined, "no such variable"],
      ["empty", "", "an empty one"],
      ["short", "s3cr3t".repeat(5), "an unfit value"],
      ["long", "s".repeat(513), "an unfit value"],
      ["quoted", `"${"s".repeat(40)}"`, "an unfit value"],
      ["ended by a line break", `${"s".repeat(40)}\n`, "an unfit value"],
    ];
    for (const [name, value, got] of table) {
      it(`refuses one that is ${name}, and tells the variable only`, async () => {
        const env = value === undefined ? {} : { THE_KEY: value };
        expect(await faultsOf(key, env)).to.deep.equal([`${keyFault} ${got}`]);
      });
    }
  });

  it("wants either a hash or a variable", async () => {
    const entry = "id: a, tenant: t, role: admin";
    expect(await faultsOf(`keys: [{${entry}}]`)).to.deep.equal([
      "gateway.yaml:1:8: keys[0]: expected either `key_hash` or `key_env`, got neither",
    ]);
    expect(await faultsOf(`keys: [{${entry}, key_hash: '${hashA}', key_env: K}]`, { K: "k".repeat(32) })).to.deep.equal(
      ["gateway.yaml:1:8: keys[0]: expected either `key_hash` or `key_env`, got both"],
    );
  });

  describe("when an upstream's variable is unfit", () => {
    const headerFault =
      "gateway.yaml:2:77: upstreams[0].headers_env.X-A: expected environment variable `THE_HEADER` to hold at most 4096 printable ASCII characters, got";

    it("refuses a header value that is missing, empty or no header value, without telling it", async () => {
      expect(await faultsOf(header)).to.deep.equal([`${headerFault} no such variable`]);
      expect(await faultsOf(header, { THE_HEADER: "" })).to.deep.equal([`${headerFault} an empty one`]);
      for (const value of ["a\r\nX-B: c", "ünsafe", " a", "s".repeat(4097)]) {
        expect(await faultsOf(header, { THE_HEADER: value })).to.deep.equal([`${headerFault} an unfit value`]);
      }
    });

    it("refuses a copied variable that is missing or empty", async () => {
      const fault =
        "gateway.yaml:2:58: upstreams[0].env_from[0]: expected environment variable `THE_VARIABLE` to hold at most 131072 characters without NUL, got";
      expect(await faultsOf(copied)).to.deep.equal([`${fault} no such variable`]);
      expect(await faultsOf(copied, { THE_VARIABLE: "" })).to.deep.equal([`${fault} an empty one`]);
    });
  });
});
