import { readdir } from "node:fs/promises";
import { expect } from "chai";
import { runCommand } from "../../support/command-host.ts";
import { startGateway } from "../../support/gateway.ts";
import { connectClient } from "../../support/mcp-client.ts";
import { Authority } from "../../support/sigstore/authority.ts";
import { identityToken, SigstoreService } from "../../support/sigstore/service.ts";
import { issuer, type Signing, SigstoreWorld, signedAt, subject } from "../../support/sigstore/world.ts";
import { readCalls, siteConfig, siteKey } from "../../support/site.ts";
import { startRefusal } from "../../support/start-check.ts";
import { TrustWorld } from "../../support/trust-world.ts";
import { type Finished, runGateway } from "../../unit/cli/run.ts";

const sigstore = new SigstoreWorld();
const foreign = new Authority("ci authority");
const prefix = "https://ci.example/team/";
const strict = "extensions: { strict: true, trust_policy: trust.yaml }";
const trust = (identity: string): string =>
  `trusted_root: root.json\nall_of: [{ name: release, identity: { ${identity} } }]\n`;

/** How a signature comes about, and what a gateway trusts; properly unless told. */
interface Case {
  readonly how?: Signing;
  readonly words?: (url: string) => readonly string[];
  readonly trust?: string;
  readonly root?: string;
}

describe("pack sign --keyless", () => {
  let world: TrustWorld;
  let service: SigstoreService | undefined;

  beforeEach(async () => {
    world = await TrustWorld.make();
  });

  afterEach(async () => {
    await service?.stop();
    service = undefined;
    await world.remove();
  });

  const sign = (
    words: readonly string[],
    env: Readonly<Record<string, string>> = { SIGSTORE_ID_TOKEN: identityToken },
    run = runCommand,
  ): Promise<Finished> => run(["pack", "sign", world.pack, "--keyless", ...words], env);
  const everyService = (url: string): readonly string[] => ["--fulcio", url, "--rekor", url, "--tsa", url];

  /** Signs with the authorities and the log of `sigstore` over HTTP, and writes what a gateway trusts. */
  async function signed({ how = {}, words = everyService, ...trusted }: Case, run = runCommand): Promise<Finished> {
    service = await SigstoreService.start(sigstore, how);
    await world.write("root.json", trusted.root ?? sigstore.trustedRoot({ logs: [sigstore.log] }));
    await world.write("trust.yaml", trusted.trust ?? trust(`issuer: "${issuer}", subject: { prefix: "${prefix}" }`));
    return sign(words(service.url), undefined, run);
  }

  const verify = (run = runCommand): Promise<Finished> =>
    run(["pack", "verify", world.pack, "--trust", world.path("trust.yaml")]);

  it("signs by a certificate, a log's entry and a time stamp, and a strict gateway loads it", async () => {
    const { code, stdout, stderr } = await signed({}, runGateway);
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: "" });
    expect(stdout).to.match(new RegExp(`^open 1\\.0\\.0: signed by ${subject} of ${issuer}, 1 in all, sha256:`));
    const verified = await verify(runGateway);
    expect(verified.code).to.equal(0);
    expect(verified.stdout).to.include(`release: ${subject} of ${issuer}, at ${signedAt.toISOString()}`);
    const config = siteConfig({ localLog: world.path("calls.log"), more: strict });
    const gateway = await startGateway({ folder: world.folder, config });
    try {
      const client = await connectClient("v2 modern", { url: `${gateway.url}/mcp`, headers: { "x-api-key": siteKey } });
      await client.callTool("list_notes");
      await client.close();
      expect((await readCalls(world.path("calls.log"))).map(({ tool }) => tool)).to.deep.equal(["list_notes"]);
    } finally {
      await gateway.stop();
    }
  });

  it("asks the build for its token, with what only the build has", async () => {
    service = await SigstoreService.start(sigstore);
    const { url, buildToken } = service;
    const build = { ACTIONS_ID_TOKEN_REQUEST_URL: `${url}/oidc`, ACTIONS_ID_TOKEN_REQUEST_TOKEN: buildToken };
    expect(await sign(everyService(url), build)).to.include({ code: 0, stderr: "" });
    const other = await sign(everyService(url), { ...build, ACTIONS_ID_TOKEN_REQUEST_TOKEN: "canary-other" });
    expect(other).to.include({ code: 1, stdout: "" });
    expect(other.stderr)
      .to.match(/^gateway: signing failed: expected /)
      .and.not.include("canary");
  });

  const before = { from: new Date("2026-02-01T00:00:00Z"), to: new Date("2026-02-02T00:00:00Z") };
  const refusals: readonly (readonly [what: string, check: string, how: Case])[] = [
    ["another issuer", "identity_issuer", { how: { issuer: "https://other.example" } }],
    ["an identity beside the prefix", "identity_unknown", { how: { subject: "https://ci.example/team-evil/main" } }],
    [
      "an identity that leads out of the prefix",
      "identity_unknown",
      { how: { subject: `${prefix}../team-evil/main` } },
    ],
    ["a certificate that had expired", "certificate_expired", { how: { validity: before } }],
    ["no log entry", "log_entry_missing", { words: (url) => ["--fulcio", url, "--tsa", url] }],
    ["a foreign root", "timestamp_invalid", { root: new SigstoreWorld().trustedRoot() }],
    [
      "a foreign certificate authority",
      "certificate_untrusted",
      { root: sigstore.trustedRoot({ authorities: [foreign] }) },
    ],
  ];
  for (const [what, check, how] of refusals) {
    it(`is refused with ${what}: ${check}`, async () => {
      expect(await signed(how)).to.include({ code: 0, stderr: "" });
      const { code, stdout } = await verify();
      expect(code).to.equal(1);
      expect(stdout.slice(world.pack.length + 2).split(":")[0]).to.equal(check);
      const config = siteConfig({ localLog: world.path("calls.log"), more: strict });
      expect(await startRefusal(world.folder, config)).to.include(`${check}: expected`);
    });
  }

  /** Signing must fail with this message, print no token, and write nothing. */
  async function expectFailure(signing: Promise<Finished>, message: string): Promise<void> {
    expect(await signing).to.deep.equal({ code: 1, stdout: "", stderr: `gateway: signing failed: ${message}\n` });
    expect(await readdir(world.pack)).to.not.include("pack.sigstore.json");
  }

  it("names what failed, and never the token", async () => {
    service = await SigstoreService.start(sigstore);
    const { url } = service;
    const words = everyService(url);
    const none = "expected an identity token, of a build that may ask for one or in SIGSTORE_ID_TOKEN, got none";
    await expectFailure(runCommand(["pack", "sign", world.pack, "--keyless", ...words]), none);
    const malformed = "expected an identity token that is a JWT with a subject, got something else";
    await expectFailure(sign(words, { SIGSTORE_ID_TOKEN: "canary" }), malformed);
    for (const [path, what] of [
      ["/api/v2/signingCert", "a certificate"],
      ["/api/v1/log/entries", "a log entry"],
      ["/api/v1/timestamp", "a time stamp"],
    ] as const) {
      service.refused = path;
      await expectFailure(sign(words), `expected ${what} of \`${url}\`, got HTTP 400`);
    }
    service.refused = "/api/v1/log/entries";
    service.refusal = 404;
    const advice = "leave `--rekor` out and prove the time with `--tsa`";
    const unwritten = `HTTP 404; a log of Rekor v2 is verified, but not written to yet: ${advice}`;
    await expectFailure(sign(words), `expected a log entry of \`${url}\`, got ${unwritten}`);
    await service.stop();
    service = undefined;
    await expectFailure(sign(words), `expected a certificate of \`${url}\`, got no answer (ECONNREFUSED)`);
  });

  it("asks no public service where a private one is named, and sends no token over plain http elsewhere", async () => {
    const alone = await sign(["--fulcio", "https://fulcio.example"]);
    expect(alone).to.include({ code: 2, stdout: "" });
    expect(alone.stderr).to.include("error: expected `--rekor <url>` or `--tsa <url>` with `--fulcio <url>`");
    const plain = await sign(everyService("http://fulcio.example"));
    expect(plain).to.include({ code: 2, stdout: "" });
    expect(plain.stderr).to.include("error: option '--fulcio <url>': expected an https: URL");
  });
});
