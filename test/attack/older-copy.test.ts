import { cp, mkdtemp, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { type HeldOptions, HeldSite, overHttp } from "../support/held-site.ts";
import { MoodyUpstream } from "../support/moody-upstream.ts";

/** Nothing but `state.mark`, and no witness of the evidence: what local mode has. The upstream's own log says what ran. */
describe("an older copy of the whole data folder", () => {
  let folder: string;
  let upstream: MoodyUpstream;
  let site: HeldSite;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "older-copy-"));
    upstream = await MoodyUpstream.start();
    const more = "log: { level: warn }\nstate: { mark: gateway.mark }";
    site = new HeldSite({ upstreams: [overHttp("moody", upstream.url)], folder, more });
    await site.start();
  });

  afterEach(async () => {
    await site.kill9().catch(() => undefined);
    upstream.stop();
    await rm(folder, { recursive: true });
  });

  it("revives no approval: its tenant is refused, and all approvals end where an operator goes on without the mark [S46]", async () => {
    const used = await site.holdAndApprove("echo", { to: "used" });
    const unused = await site.holdAndApprove("echo", { to: "unused" });
    await site.stop();
    await cp(at("data"), at("older"), { recursive: true });
    await site.start();
    await site.call("echo", { to: "used" });
    await site.kill9();
    await rm(at("data"), { recursive: true });
    await rename(at("older"), at("data"));
    await site.start();
    for (const to of ["used", "unused"]) expect((await site.call("echo", { to })).status).to.equal(503);
    const text = site.gateway.stderr();
    expect(text).to.contain("chain of tenant `acme` is older than its mark in");
    expect(text).to.contain("Put the newest data folder back. To go on with this one, move the mark aside");
    await site.stop();
    // As the text says.
    await rename(at("gateway.mark"), at("aside"));
    await site.start();
    for (const to of ["used", "unused"]) await site.call("echo", { to });
    for (const id of [used, unused]) expect(await site.show(id)).to.include({ state: "expired", reason: "restored" });
    expect(called()).to.deep.equal(["used"]);
    expect(site.gateway.stderr()).to.contain('"approvals_ended":2');
  });

  it("is not begun anew where the data folder is gone, and has its mark elsewhere [S46]", async () => {
    await site.hold("echo", { to: "held" });
    await site.stop();
    await rename(at("data"), at("away"));
    expect(await startRefusal()).to.contain("got no chain");
    await rm(at("data"), { recursive: true });
    await rename(at("away"), at("data"));
    const inside = "state: { mark: data/marks/gateway.mark }";
    expect(await startRefusal({ more: inside })).to.contain("expected `state.mark` outside `data_dir`");
  });

  function at(name: string): string {
    return join(folder, name);
  }

  async function startRefusal(over: Partial<HeldOptions> = {}): Promise<string> {
    return site.start(over).then(
      () => "started",
      (error: Error) => error.message,
    );
  }

  function called(): readonly string[] {
    return upstream.calls.flatMap(({ arguments: given }) => (given as { to?: string }).to ?? []);
  }
});
