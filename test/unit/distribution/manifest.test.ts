import { expect } from "chai";
import { checkFileNames } from "../../../core/distribution/file-name.ts";
import { encodeManifest, readArtifactManifest } from "../../../core/distribution/manifest.ts";

const files = new Map(
  ["pack.yaml", "rules/a.yaml", "pack.sigstore.json"].map((name) => [name, Buffer.from(name)] as const),
);

function faultOf(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    return (error as Error).message;
  }
  return "none";
}

describe("encodeManifest and readArtifactManifest", () => {
  const encoded = encodeManifest("pack", { name: "open", version: "1.0.0" }, files);
  const manifest = JSON.parse(encoded.toString());
  const faultWith = (change: object): string =>
    faultOf(() => readArtifactManifest("pack", Buffer.from(JSON.stringify({ ...manifest, ...change }))));

  it("agree, whatever the order of the files", () => {
    expect(readArtifactManifest("pack", encoded).map(({ name }) => name)).to.have.members([...files.keys()]);
    const other = encodeManifest("pack", { name: "open", version: "1.0.0" }, new Map([...files].reverse()));
    expect(other.equals(encoded)).to.equal(true);
  });

  it("refuse what they do not check", () => {
    const [layer, ...layers] = manifest.layers;
    expect(faultWith({ subject: {} })).to.equal('artifact refused: a manifest: expected no member "subject"');
    expect(faultWith({ schemaVersion: 1 })).to.include("expected `schemaVersion` 2, got 1");
    expect(faultWith({ mediaType: { toString: 1 } })).to.include('got {"toString":1}');
    expect(faultWith({ artifactType: undefined })).to.include("of a pack, got none");
    expect(faultWith({ layers: {} })).to.include("expected a manifest with `layers`, got none");
    for (const [change, fault] of [
      [{ data: "" }, 'layer 1: expected no member "data"'],
      [{ mediaType: "text/plain" }, 'got "text/plain"'],
      [{ size: -1 }, "layer 1: expected at most 1048576 bytes, got -1"],
      [{ size: 0.5 }, "got 0.5"],
      [{ size: "1" }, 'got "1"'],
      [{ digest: "sha512:00" }, 'layer 1: expected a digest `sha256:<hex>`, got "sha512:00"'],
      [{ annotations: {} }, "layer 1: expected the annotation `org.opencontainers.image.title`, got none"],
    ] as const) {
      expect(faultWith({ layers: [{ ...layer, ...change }, ...layers] })).to.include(fault);
    }
    for (const text of ["", "[]", '{"layers":[],"layers":[]}', `${"[".repeat(100)}`])
      expect(faultOf(() => readArtifactManifest("pack", Buffer.from(text)))).to.include("expected a manifest");
  });
});

describe("checkFileNames(kind, names)", () => {
  const faultFor = (kind: "pack" | "plugin", name: string): string =>
    faultOf(() => checkFileNames(kind, [`${kind}.yaml`, `${kind}.sigstore.json`, name]));

  it("accepts what authors have", () => {
    for (const name of [".gitignore", "a/b/c/d/e/f/g/h", "rules/x-1_2+3.yaml", "build/x", "..x", "x.."])
      expect(faultFor("pack", name), name).to.equal("none");
  });

  it("refuses an author's working folders, which are neither signed nor loaded, and too deep or long paths", () => {
    for (const name of ["node_modules/x.js", "Build/x", ".git/x"]) expect(faultFor("plugin", name)).to.include("plain");
    for (const name of ["a/b/c/d/e/f/g/h/i", "x".repeat(129), `${"x".repeat(120)}/`.repeat(5), "a b", "ä", "a/", "/a"])
      expect(faultFor("pack", name), name).to.include("expected a relative path of plain file names");
  });
});
