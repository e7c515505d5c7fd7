import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { contentDigest } from "../../../core/action/canonical-json.ts";
import { generateKey, presentedKey } from "../../../core/identity/key-ring.ts";

describe("generateKey(random)", () => {
  it("writes 256 bits as `agw_` and 43 base64url characters, with their hash", () => {
    const { key, keyHash } = generateKey((count) => new Uint8Array(count).fill(0xff));
    expect(key).to.equal("agw___________________________________________8");
    expect(keyHash).to.equal(contentDigest(key));
  });

  it("uses every byte it is given", () => {
    const keys = Array.from(
      { length: 32 },
      (_, at) => generateKey((count) => new Uint8Array(count).fill(1, at, at + 1)).key,
    );
    expect(new Set(keys).size).to.equal(32);
  });

  it("makes keys that a request can present", () => {
    const { key } = generateKey(randomBytes);
    expect(presentedKey(["Authorization", `Bearer ${key}`])).to.equal(key);
  });

  it("throws TypeError where the source is short of bytes", () => {
    expect(() => generateKey(() => new Uint8Array(16))).to.throw(TypeError, "generateKey: expected 32 bytes, got 16");
  });
});
