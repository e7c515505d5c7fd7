import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import { presentedKey } from "../../../core/identity/key-ring.ts";

const key = "agw_abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG";

describe("presentedKey(rawHeaders)", () => {
  it("reads X-API-Key and Authorization: Bearer, in whatever case", () => {
    expect(presentedKey(["X-API-Key", key])).to.equal(key);
    expect(presentedKey(["x-api-key", key])).to.equal(key);
    expect(presentedKey(["Authorization", `Bearer ${key}`])).to.equal(key);
    expect(presentedKey(["AUTHORIZATION", `bearer ${key}`])).to.equal(key);
    expect(presentedKey(["X-API-Key", key, "Authorization", `Bearer ${key}`])).to.equal(key);
  });

  it("reads X-Goog-Api-Key as another place for the same key", () => {
    expect(presentedKey(["X-Goog-Api-Key", key])).to.equal(key);
    expect(presentedKey(["x-goog-api-key", key, "X-API-Key", key, "Authorization", `Bearer ${key}`])).to.equal(key);
    for (const other of ["X-API-Key", "Authorization"]) {
      const value = other === "Authorization" ? `Bearer ${key}x` : `${key}x`;
      expectError(
        [other, value, "X-Goog-Api-Key", key],
        "INVALID_HEADER",
        "invalid header: expected one key, got another in `x-goog-api-key`",
      );
    }
    expectError(["X-Goog-Api-Key", key, "x-goog-api-key", key], "DUPLICATE_HEADER");
    expectError(["X-API-Key", key, "X-Goog-Api-Key", ""], "KEY_UNKNOWN");
  });

  it("takes every character a token can have, and 512 of them", () => {
    const token = `Aa0._~+/=-${"x".repeat(502)}`;
    expect(presentedKey(["X-API-Key", token])).to.equal(token);
  });

  it("answers null where there is neither", () => {
    expect(presentedKey([])).to.equal(null);
    expect(presentedKey(["Host", "a", "Cookie", key, "X-API-Key-2", key, "Proxy-Authorization", key])).to.equal(null);
    expect(presentedKey(["Note", "x-api-key", "Note", key])).to.equal(null);
  });

  describe("when a header is there twice", () => {
    it("throws DUPLICATE_HEADER, even for equal values", () => {
      expectError(
        ["X-API-Key", key, "x-api-key", key],
        "DUPLICATE_HEADER",
        "duplicate header: expected `x-api-key` once, got it again",
      );
      expectError(
        ["Authorization", `Bearer ${key}`, "authorization", `Bearer ${key}`],
        "DUPLICATE_HEADER",
        "duplicate header: expected `authorization` once, got it again",
      );
    });

    it("throws DUPLICATE_HEADER where the other one is empty or unfit", () => {
      expectError(["X-API-Key", "", "X-API-Key", key], "DUPLICATE_HEADER");
      expectError(["Authorization", "Basic x", "Authorization", `Bearer ${key}`], "DUPLICATE_HEADER");
      expectError(["X-API-Key", key, "Authorization", `Bearer ${key}`, "X-API-Key", "other"], "DUPLICATE_HEADER");
    });
  });

  it("throws INVALID_HEADER for two kinds with different keys", () => {
    expectError(
      ["X-API-Key", key, "Authorization", `Bearer ${key}x`],
      "INVALID_HEADER",
      "invalid header: expected one key, got another in `authorization` than in `x-api-key`",
    );
  });

  describe("when the header is there and no key can look so", () => {
    const unfit: [string, string][] = [
      ["empty", ""],
      ["of 513 characters", "s".repeat(513)],
      ["of a million characters", "s".repeat(1_000_000)],
      ["quoted", `"${key}"`],
      ["with NUL", `${key}\0`],
      ["with a line break", `${key}\n`],
      ["not Latin", "ключ"],
      ["Latin-1", `${key}\u00e9`],
      ["with a space", `${key} x`],
      ["joined from two", `${key}, ${key}`],
    ];
    for (const [name, value] of unfit) {
      it(`throws KEY_UNKNOWN and not null, for one ${name}`, () => {
        expectError(["X-API-Key", value], "KEY_UNKNOWN", "unknown key");
        expectError(["Authorization", `Bearer ${value}`], "KEY_UNKNOWN", "unknown key");
      });
    }

    for (const value of ["Bearer", "Basic dTpw", "Digest x", key, `Bearer\t${key}`, `Bearer  ${key}`, `Token ${key}`]) {
      it(`throws KEY_UNKNOWN for Authorization: ${JSON.stringify(value.slice(0, 12))}`, () => {
        expectError(["Authorization", value], "KEY_UNKNOWN", "unknown key");
      });
    }

    it("throws KEY_UNKNOWN where the other kind is a good key", () => {
      expectError(["Authorization", "Basic dTpw", "X-API-Key", key], "KEY_UNKNOWN");
      expectError(["Authorization", `Bearer ${key}`, "X-API-Key", ""], "KEY_UNKNOWN");
    });
  });
});

function expectError(rawHeaders: readonly string[], code: string, message?: string): void {
  let thrown: unknown;
  try {
    presentedKey(rawHeaders);
  } catch (error) {
    thrown = error;
  }
  expect(thrown).to.be.instanceOf(GatewayError).with.property("code", code);
  if (message !== undefined) expect((thrown as GatewayError).message).to.equal(message);
  expect((thrown as GatewayError).data).to.equal(undefined);
}
