import { expect } from "chai";
import { type ClientSide, connectClient } from "../../support/mcp-client.ts";
import { everythingServer } from "./server-program.ts";
import { openWorld, type World } from "./world.ts";

const side: ClientSide = {
  sampling: () => ({ role: "assistant", model: "test", content: { type: "text", text: "4" } }),
  elicitation: () => ({ action: "accept", content: { name: "Ada" } }),
  roots: () => ({ roots: [{ uri: "file:///work", name: "work" }] }),
};

describe("the official client over HTTP+SSE", () => {
  let inner: World;

  before(async () => {
    inner = await openWorld({ servers: () => ({ every: everythingServer() }) });
  });

  after(() => inner?.stop());

  it("does not connect without a good key, and connects with one in either header [R7-4]", async () => {
    const { url } = inner.gateway;
    for (const headers of [{}, { "x-api-key": "wrong" }, { authorization: `Basic ${inner.key}` }]) {
      const attempt = connectClient("v1 sse", { url, headers: headers as Record<string, string> });
      const error = await attempt.then(
        () => expect.fail("expected an error"),
        (fault: Error & { code?: number }) => fault,
      );
      expect(error.code).to.equal(401);
    }
    const client = await connectClient("v1 sse", { url, headers: { authorization: `Bearer ${inner.key}` } });
    expect((await client.listTools()).length).to.be.above(5);
    await client.close();
  });

  it("is in another session each time it connects [R2.1-14]", async () => {
    const before = (await inner.evidence.sessions()).length;
    for (const expected of [1, 2, 3]) {
      const client = await inner.connect("v1 sse");
      await client.callTool("echo", { message: "x" });
      await client.close();
      expect((await inner.evidence.sessions()).length - before).to.equal(expected);
    }
  });

  it("may be another gateway: through both, answers, progress and questions are the server's own", async () => {
    const inUrl = `${inner.gateway.url}/sse`;
    const upstream = `{ name: inner, transport: sse, url: "${inUrl}", headers_env: { authorization: INNER_KEY } }`;
    const outer = await openWorld({ upstreams: [upstream], env: { INNER_KEY: `Bearer ${inner.key}` } });
    try {
      const direct = await connectClient("v1", everythingServer(), side);
      const client = await outer.connect("v1 sse", side);
      expect(await client.listTools()).to.deep.equal(await direct.listTools());
      for (const [tool, args] of [
        ["echo", { message: "through two" }],
        ["trigger-sampling-request", { prompt: "2 + 2?", maxTokens: 7 }],
        ["trigger-elicitation-request", {}],
        ["get-roots-list", {}],
      ] as const) {
        const expected = await direct.callTool(tool, args);
        expect(await client.callTool(tool, args), tool).to.deep.equal(expected);
      }
      const steps: number[] = [];
      const onProgress = ({ progress }: { progress: number }): void => void steps.push(progress);
      await client.callTool("trigger-long-running-operation", { duration: 0.2, steps: 4 }, { onProgress });
      expect(steps.slice(0, 3)).to.deep.equal([1, 2, 3]);
      await direct.close();
    } finally {
      await outer.stop();
    }
  });
});
