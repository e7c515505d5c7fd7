import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import { type WebSocket, WebSocketServer } from "ws";
import { nodeFlags } from "../../support/node-flags.ts";
import { program } from "../../unit/cli/run.ts";

const decision = {
  id: "019b7600-0000-7000-8000-000000000000",
  decision: "allow",
  rules: ["site.rule"],
  principal: "agent",
  session: "session-v1-0",
  label: "nightly",
  tool: "read_note",
  target: "demo",
  capability: "read",
};

/** Names as an agent or a server may choose them: another line, a colour, another direction. */
const hostile = { tool: "read\nallow \u001b[32m", target: "de\u202emo", label: "x\u009b2J", rules: ["a\u2028b"] };

describe("gateway tail", () => {
  let server: WebSocketServer;
  let child: ChildProcess;
  /** Called once a client has subscribed. */
  let serve: (socket: WebSocket) => void;
  const keys: unknown[] = [];

  beforeEach(async () => {
    server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
    await once(server, "listening");
    server.on("connection", (socket, request) => {
      keys.push(request.headers["x-api-key"]);
      socket.send(JSON.stringify({ type: "auth_ok", id: null, payload: {} }));
      socket.on("message", (data) => {
        const { payload } = JSON.parse(String(data)) as { payload: object };
        socket.send(JSON.stringify({ type: "subscribed", id: null, payload }));
        serve(socket);
      });
    });
  });

  afterEach(async () => {
    if (child.exitCode === null && child.kill("SIGKILL")) await once(child, "exit");
    for (const socket of server.clients) socket.terminate();
    server.close();
  });

  function start(...words: readonly string[]): Promise<readonly [code: number, stdout: string, stderr: string]> {
    const env = { GATEWAY_API_KEY: "key", GATEWAY_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
    const started = spawn(process.execPath, [...nodeFlags, program, "tail", ...words], { env });
    child = started;
    const ended = once(started, "exit") as Promise<[number]>;
    return Promise.all([ended.then(([code]) => code), text(started.stdout), text(started.stderr)]);
  }

  function send(socket: WebSocket, data: object, type = "event"): void {
    const payload = { channel: "decisions", time: "2026-11-01T00:00:00.000Z", data };
    socket.send(JSON.stringify({ type, id: null, payload: type === "event" ? payload : data }));
  }

  it("prints what agents and servers named on one line, whatever is in it, and JSON in ASCII", async () => {
    serve = (socket) => send(socket, { ...decision, ...hostile });
    const [code, stdout] = await start("--limit", "1");
    expect(code).to.equal(0);
    expect(stdout).to.match(/^[ -~]+\n$/);
    expect(stdout).to.include('read "read\\nallow \\u{1b}[32m" on "de\\u{202e}mo"').and.include("a\\u{2028}b");
    const [, json] = await start("--limit", "1", "--json");
    expect(json).to.match(/^[ -~]+\n$/);
    expect((JSON.parse(json) as { data: object }).data).to.include({ tool: hostile.tool, target: hostile.target });
    expect(keys).to.deep.equal(["key", "key"]);
  });

  it("connects again to a gateway that went away, and says so, and what was missed", async () => {
    let connection = 0;
    serve = (socket) => {
      connection++;
      if (connection > 1) send(socket, { count: 7 }, "missed");
      send(socket, { ...decision, id: `decision-${connection}` });
      if (connection === 1) socket.close(1001);
    };
    const [code, stdout, stderr] = await start("--limit", "2");
    expect(code).to.equal(0);
    expect(stdout).to.match(/decision-1\n.*decision-2\n$/);
    expect(stderr).to.match(
      /^gateway: following ws:.*\ngateway: no answer; waiting for the gateway\ngateway: the gateway answers again\ngateway: 7 events were missed.*\n$/,
    );
  });

  it("ends where its key is revoked, and takes nothing of what is no gateway", async () => {
    serve = (socket) => socket.close(4401, "the key was removed");
    const [code, , stderr] = await start();
    expect([code, stderr.split("\n")[1]]).to.deep.equal([
      1,
      "gateway: unknown key: the key was removed; check GATEWAY_API_KEY",
    ]);
    serve = (socket) => socket.send("\u001b[31mnonsense");
    const [other, stdout, why] = await start();
    expect([other, stdout]).to.deep.equal([1, ""]);
    expect(why).to.include("expected messages of a gateway");
  });
});
