import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { PassThrough } from "node:stream";
import { expect } from "chai";
import Koa from "koa";
import { GatewayError } from "../../../core/action/error.ts";
import { logBrokenResponse } from "../../../core/http/app.ts";

type Entry = readonly [level: string, event: string, fields: unknown];

class LogBook {
  readonly entries: Entry[] = [];

  info(fields: unknown, event?: string): void {
    this.entries.push(["info", event ?? "", fields]);
  }

  error(fields: unknown, event?: string): void {
    this.entries.push(["error", event ?? "", fields]);
  }
}

describe("logBrokenResponse(log, fault)", () => {
  it("logs a client that goes away in the middle of a response as a disconnect, not as an internal error", async () => {
    const log = new LogBook();
    const app = new Koa();
    app.silent = true;
    const broken = new Promise<void>((resolve) => {
      app.on("error", (error) => {
        logBrokenResponse(log, error);
        resolve();
      });
    });
    app.use((ctx) => {
      const body = new PassThrough();
      body.write("the beginning");
      ctx.body = body;
    });
    const server = createServer(app.callback());
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
    socket.write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await once(socket, "data");
    socket.destroy();
    await broken;
    server.close();
    expect(log.entries).to.deep.equal([["info", "client_disconnected", { code: "ERR_STREAM_PREMATURE_CLOSE" }]]);
  });

  for (const [code, event] of [
    ["CANCELLED", "client_disconnected"],
    ["UPSTREAM_UNAVAILABLE", "upstream_disconnected"],
    ["PROVIDER_INVALID", "upstream_disconnected"],
  ] as const) {
    it(`logs ${code} as ${event} at info`, () => {
      const log = new LogBook();
      logBrokenResponse(log, new GatewayError(code));
      expect(log.entries.map(([level, name]) => [level, name])).to.deep.equal([["info", event]]);
    });
  }

  it("logs any other fault as an error of the gateway, with its message", () => {
    const log = new LogBook();
    logBrokenResponse(log, new RangeError("out of range"));
    const fields = { code: "INTERNAL", detail: "out of range" };
    expect(log.entries).to.deep.equal([["error", "response_failed", fields]]);
  });
});
