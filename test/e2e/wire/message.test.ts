import { expect } from "chai";
import { mcpMethods } from "../../../core/gateway/mcp/method.ts";
import { echoCall, effectsOf, messageHeaders, nothing, openWorld, post, type World } from "./world.ts";

const unknownMethods = [
  "vendor/do",
  "Tools/Call",
  "tools/call ",
  "tools//call",
  "sampling/createMessage",
  "elicitation/create",
  "roots/list",
  "tasks/get",
  "notifications/initialized",
  "rpc.discover",
  "__proto__",
  "constructor",
  "toString",
];

const refusedMessages: readonly [string, string][] = [
  ["a batch", `[${echoCall()},${echoCall("{}", "2")}]`],
  ["a batch of one", `[${echoCall()}]`],
  ["a batch in a batch", `[[${echoCall()}]]`],
  ["a response nobody waits for", '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'],
  ["an error nobody waits for", '{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}'],
  ["a request that is a response too", echoCall().replace(/\}$/, ',"result":{}}')],
  ["an id that is null", echoCall("{}", "null")],
  ["an id that is an object", echoCall("{}", '{"a":1}')],
  ["an id that is an array", echoCall("{}", "[1]")],
  ["an id that is a truth value", echoCall("{}", "true")],
  ["an id that is a fraction", echoCall("{}", "1.5")],
  ["an id of 257 characters", echoCall("{}", `"${"x".repeat(257)}"`)],
  ["a call as a notification", '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}'],
];

const otherSpellings: readonly [string, string][] = [
  ["Method", '{"jsonrpc":"2.0","id":1,"Method":"tools/call","params":{"name":"echo"}}'],
  ["METHOD beside method", '{"jsonrpc":"2.0","id":1,"method":"ping","METHOD":"tools/call","params":{"name":"echo"}}'],
  ["PARAMS", '{"jsonrpc":"2.0","id":1,"method":"tools/call","PARAMS":{"name":"echo"}}'],
  ["paramſ", '{"jsonrpc":"2.0","id":1,"method":"tools/call","paramſ":{"name":"echo"}}'],
  ["Name", '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Name":"echo"}}'],
  ["ID", '{"jsonrpc":"2.0","ID":1,"method":"tools/call","params":{"name":"echo"}}'],
  ["JSONRPC", '{"JSONRPC":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}'],
];

describe("a message", () => {
  let world: World;
  before(async () => {
    world = await openWorld();
    await post(world, echoCall());
  });
  after(() => world.stop());

  for (const [what, body] of refusedMessages) {
    it(`refuses ${what} [S23]`, async () => {
      const effects = await effectsOf(world, async () => {
        const response = await post(world, body);
        expect(response.status).to.equal(400);
        expect(JSON.parse(response.body).error.data.code).to.equal("INVALID_REQUEST");
      });
      expect(effects).to.deep.equal(nothing);
    });
  }

  it("runs no method as a notification [S23]", async () => {
    const effects = await effectsOf(world, async () => {
      for (const method of Object.keys(mcpMethods)) {
        const response = await post(world, JSON.stringify({ jsonrpc: "2.0", method, params: { name: "echo" } }));
        expect(response.status, method).to.equal(400);
      }
    });
    expect(effects).to.deep.equal(nothing);
  });

  it("gives each of two tenants its own answers, though all ids are equal and in flight at once [S23, R4.1-1]", async () => {
    const ask = async (holder: "operator" | "foreign", wait: number): Promise<void> => {
      const args = `{"mine":"${holder}-${wait}","wait_ms":${wait}}`;
      const response = await post(world, echoCall(args, "7"), { headers: messageHeaders(holder) });
      const answer = JSON.parse(response.body);
      expect(answer.id).to.equal(7);
      expect(answer.result.content[0].text).to.contain(`"mine":"${holder}-${wait}"`);
    };
    const waits = Array.from({ length: 25 }, (_, index) => (index * 37) % 100);
    await Promise.all(waits.flatMap((wait) => [ask("operator", wait), ask("foreign", 99 - wait)]));
  });

  it("knows members by their exact names only [S14]", async () => {
    const effects = await effectsOf(world, async () => {
      for (const [what, body] of otherSpellings) {
        const response = await post(world, body);
        expect(response.body, what).not.to.contain("content");
      }
    });
    expect(effects).to.deep.equal(nothing);
  });

  it("forwards its own rendering of what was judged, and no byte more [S14, R2.4-1]", async () => {
    const params = '{ "name" : "echo", "NAME":"deep", "arguments" : { "z" : "\\u0061" , "a":[1 ] }, "extra":true }';
    const extra = '"PARAMS":{"name":"deep"},"paramſ":{"name":"deep"},"result2":1,"__proto__":{"method":"x"}';
    const body = `\r\n {"extra":1,"jsonrpc":"2.0","id":"one","method":"tools\\/call","params":${params},${extra}}\t`;
    const response = await post(world, body);
    expect(response.status).to.equal(200);
    const call = (await world.upstream.calls()).at(-1)?.body ?? "";
    const id = /"id":(\d+)/.exec(call)?.[1];
    expect(call).to.equal(
      `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"echo","arguments":{"z":"a","a":[1]}}}`,
    );
  });

  it("enters policy and evidence only where it comes through the gateway [R1.1-23]", async () => {
    const headers = { "content-type": "application/json" };
    const direct = () => fetch(world.upstream.url, { method: "POST", headers, body: echoCall() });
    expect(await effectsOf(world, direct)).to.deep.equal({ calls: 1, records: 0 });
    expect(await effectsOf(world, () => post(world, echoCall()))).to.deep.equal({ calls: 1, records: 2 });
  });

  it("drops `_meta` that the operator did not let through [S14]", async () => {
    const meta =
      '{"progressToken":"p","traceparent":"00-x","vendor/secret":1,"io.modelcontextprotocol/clientInfo":{"name":"x"}}';
    await post(world, echoCall().replace('"arguments"', `"_meta":${meta},"arguments"`));
    const call = JSON.parse((await world.upstream.calls()).at(-1)?.body ?? "{}");
    expect(Object.keys(call.params._meta)).to.deep.equal(["progressToken"]);
    expect(call.params._meta.progressToken).to.be.a("number");
  });

  it("refuses a method it does not know, and pipes nothing through [S25]", async () => {
    const before = (await world.upstream.requests()).length;
    const effects = await effectsOf(world, async () => {
      for (const method of unknownMethods) {
        const response = await post(world, JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { name: "echo" } }));
        expect(response.status, method).to.equal(404);
        expect(JSON.parse(response.body).error.code, method).to.equal(-32601);
      }
    });
    expect(effects).to.deep.equal(nothing);
    expect((await world.upstream.requests()).length).to.equal(before);
  });

  it("refuses a known method that no upstream can serve, and drops unknown notifications [S25]", async () => {
    const before = (await world.upstream.requests()).length;
    const read = { jsonrpc: "2.0", id: 1, method: "resources/read", params: { uri: "file:///etc/passwd" } };
    const answer = JSON.parse((await post(world, JSON.stringify(read))).body);
    expect(answer.error.code).to.equal(-32602);
    for (const method of ["notifications/vendor", "vendor/do", "notifications/message"]) {
      const response = await post(world, JSON.stringify({ jsonrpc: "2.0", method, params: { name: "echo" } }));
      expect(response, method).to.include({ status: 202, body: "" });
    }
    expect((await world.upstream.requests()).length).to.equal(before);
  });
});
