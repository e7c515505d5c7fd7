import { expect } from "chai";
import { startGateway } from "../../support/gateway.ts";
import { siteConfig } from "../../support/site.ts";
import { makeSigner, recordedEvents, TrustWorld, trustEntry } from "../../support/trust-world.ts";

const alice = makeSigner();
const more = "extensions: { strict: true, trust_policy: trust.yaml }";

/** The promise of README's "What you can rely on" that is about strict mode. */
describe("a gateway in strict mode", () => {
  let world: TrustWorld;

  before(async () => {
    world = await TrustWorld.make();
    await world.write("trust.yaml", `all_of: [${trustEntry("alice", alice)}]\n`);
    await world.sign([alice]);
  });

  after(() => world.remove());

  const start = () =>
    startGateway({ folder: world.folder, config: siteConfig({ remoteUrl: "http://127.0.0.1:9/mcp", more }) });

  it("11 loads what a trusted signer signed, and refuses it with one byte changed", async () => {
    await (await start()).stop();
    await world.flip("packs/open/rules/all.yaml", 20);
    const error = await start().then(
      () => undefined,
      (cause: Error) => cause,
    );
    expect(error?.message).to.include("file_altered");
    const events = await recordedEvents(world.path("data"), "extension");
    expect(events.map(({ event }) => event)).to.deep.equal(["loaded", "refused"]);
  });
});
