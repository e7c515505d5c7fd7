import { expect } from "chai";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { type Recorder, startRecorder } from "../../support/recorder.ts";
import { siteConfig, siteFiles, siteKey } from "../../support/site.ts";
import { send } from "../../support/wire.ts";

/** The messages of the gateway's own start of an upstream; the empty one ends its session. */
const ofTheStart = ["server/discover", "initialize", "notifications/initialized", "tools/list", ""];

describe("/health", () => {
  let upstream: Recorder;
  let gateway: RunningGateway;

  before(async () => {
    upstream = await startRecorder();
    gateway = await startGateway({ config: siteConfig({ remoteUrl: upstream.url }), files: siteFiles() });
  });

  after(async () => {
    await gateway.stop();
    await upstream.stop();
  });

  const ports = ["url", "adminUrl", "metricsUrl"] as const;
  for (const port of ports) {
    it(`answers GET without a key on ${port} [R4.1-6, R4.2-1, R5-7]`, async () => {
      const { status, body, headers } = await send(gateway[port], { target: "/health" });
      expect(status).to.equal(200);
      expect(JSON.parse(body)).to.deep.equal({ status: "ok", version: "0.1.0" });
      expect(headers.get("content-type")).to.match(/^application\/json/);
    });

    it(`answers HEAD without a key and without a body on ${port} [R4.1-6, R5-7]`, async () => {
      const response = await fetch(`${gateway[port]}/health`, { method: "HEAD" });
      expect([response.status, await response.text()]).to.deep.equal([200, ""]);
    });

    it(`runs nothing for a POST on ${port}, whatever it carries [R4.1-7, R7-8]`, async () => {
      const { status, headers } = await send(gateway[port], {
        method: "POST",
        target: "/health",
        headers: [
          ["content-type", "application/json"],
          ["x-api-key", siteKey],
        ],
        body: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{}}}',
      });
      expect([status, headers.get("allow")]).to.deep.equal([405, "GET, HEAD"]);
    });
  }

  it("left the upstream and the evidence untouched [R4.1-7, R7-8]", async () => {
    const methods = (await upstream.requests()).map(({ body }) => (body === "" ? "" : JSON.parse(body).method));
    expect(methods.filter((method) => !ofTheStart.includes(method))).to.deep.equal([]);
    expect(methods.filter((method) => method === "tools/list").length).to.be.at.most(1);
    expect(await new EvidenceReader(gateway.adminUrl, siteKey).sessions()).to.deep.equal([]);
  });
});
