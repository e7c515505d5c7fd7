import { expect } from "chai";
import { Client } from "undici";
import { HeldSite, heldId, overHttp } from "../../support/held-site.ts";
import { MoodyUpstream } from "../../support/moody-upstream.ts";

/** What an agent sends: the text of the arguments, and what else of a request can differ. */
interface Call {
  readonly args: string;
  readonly tool?: string;
  readonly label?: string;
  readonly person?: "agent" | "other";
  readonly id?: string;
  readonly meta?: string;
  /** Further members of `params`, each with a comma before it. */
  readonly params?: string;
  readonly modern?: boolean;
}

const base: Call = { args: '{"a":{"b":[1,"x",null]},"c":"\\u00e9","d":""}' };
const modernMeta =
  '"io.modelcontextprotocol/protocolVersion":"2026-07-28",' +
  '"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}';

const same: Readonly<Record<string, Call>> = {
  "the order of keys": { args: '{"d":"","c":"\\u00e9","a":{"b":[1,"x",null]}}' },
  "white space": { args: '{ "a" :\n{"b":[ 1 ,"x",null]}\t,"c":"\\u00e9","d":""}' },
  "the spelling of the same letter in JSON": { args: '{"a":{"b":[1,"\\u0078",null]},"c":"é","d":""}' },
  "the spelling of the same number": { args: '{"a":{"b":[1.0,"x",null]},"c":"\\u00e9","d":""}' },
  "the JSON-RPC id": { ...base, id: '"another"' },
  "the progress token": { ...base, meta: '"progressToken":"p-1"' },
  "the trace": { ...base, meta: '"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"' },
  "`_meta` that reaches nobody": { ...base, meta: '"example.com/note":"n"' },
  "an answer to a question nobody asked, which reaches nobody": { ...base, params: ',"inputResponses":{}' },
};

const other: Readonly<Record<string, Call>> = {
  "another tool": { ...base, tool: "ECHO" },
  "another target": { ...base, tool: "second_echo" },
  "another label": { ...base, label: "two" },
  "another key": { ...base, person: "other" },
  "another capability": { ...base, tool: "reader" },
  "a nested value": { args: '{"a":{"b":[2,"x",null]},"c":"\\u00e9","d":""}' },
  "the type of a nested value": { args: '{"a":{"b":["1","x",null]},"c":"\\u00e9","d":""}' },
  "the order of an array": { args: '{"a":{"b":["x",1,null]},"c":"\\u00e9","d":""}' },
  "letter case": { args: '{"a":{"b":[1,"X",null]},"c":"\\u00e9","d":""}' },
  "the letter case of a key": { args: '{"A":{"b":[1,"x",null]},"c":"\\u00e9","d":""}' },
  "another form of the same letter (NFD)": { args: '{"a":{"b":[1,"x",null]},"c":"e\\u0301","d":""}' },
  "null in place of text": { args: '{"a":{"b":[1,"x",null]},"c":"\\u00e9","d":null}' },
  "a missing member": { args: '{"a":{"b":[1,"x",null]},"c":"\\u00e9"}' },
  "a missing element": { args: '{"a":{"b":[1,"x"]},"c":"\\u00e9","d":""}' },
  "a further member": { args: '{"a":{"b":[1,"x",null]},"c":"\\u00e9","d":"","e":null}' },
  "text that slid into its neighbour": { args: '{"a":{"b":[1,"x",null]},"c":"","d":"\\u00e9"}' },
  "`_meta` that is passed through": { ...base, meta: '"example.com/passed":"n"' },
  "other `_meta` that is passed through": { ...base, meta: '"example.com/passed":"m"' },
};

/** Each call is held; equal ones wait for one approval, others for one each. Nothing of this needs a reviewer. */
describe("what an approval is bound to, through the socket", () => {
  let upstream: MoodyUpstream;
  let site: HeldSite;
  let client: Client;
  const known = new Map<string, string>();

  before(async () => {
    upstream = await MoodyUpstream.start();
    upstream.publish(["echo", "ECHO", "reader"].map((name) => ({ name, inputSchema: { type: "object" } })));
    site = new HeldSite({
      upstreams: [
        overHttp("first", upstream.url, ", capabilities: { reader: read }"),
        overHttp("second", upstream.url, ", tool_prefix: second_"),
      ],
      more: "mcp_gateway: { meta_passthrough: [example.com/passed] }",
    });
    await site.start();
    client = new Client(site.gateway.url, { pipelining: 1 });
    known.set(await ask(base), "the call itself");
  });

  after(async () => {
    await client.destroy();
    await site.stop();
    expect(upstream.calls).to.deep.equal([]);
    upstream.stop();
  });

  for (const [what, call] of Object.entries(same)) {
    it(`is not ${what} [S48] [S50]`, async () => {
      expect(known.get(await ask(call))).to.equal("the call itself");
    });
  }

  for (const [what, call] of Object.entries(other)) {
    it(`tells ${what} from all others [S48] [S49] [R2.2-1] [R2.2-3] [R5-13]`, async () => {
      const id = await ask(call);
      expect(known.get(id)).to.equal(undefined);
      known.set(id, what);
      expect(await ask(call)).to.equal(id);
    });
  }

  it("tells what answers an upstream's question from a call that answers none [S50]", async () => {
    const modern: Call = { ...base, modern: true, meta: modernMeta };
    const plain = await ask(modern);
    const answering = await ask({
      ...modern,
      params: ',"inputResponses":{"q":{"action":"accept"}},"requestState":"s"',
    });
    const otherwise = await ask({
      ...modern,
      params: ',"inputResponses":{"q":{"action":"decline"}},"requestState":"s"',
    });
    const elsewhere = await ask({
      ...modern,
      params: ',"inputResponses":{"q":{"action":"accept"}},"requestState":"t"',
    });
    expect(new Set([plain, answering, otherwise, elsewhere]).size).to.equal(4);
  });

  it("tells a text from its neighbour's in tool, target and arguments [S49]", async () => {
    const calls = ['{"a":"bc"}', '{"ab":"c"}', '{"a":"b","c":""}', '{"a":""}', '{"a":null}', "{}", '{"a":"null"}'];
    const ids = await Promise.all(calls.map((args) => ask({ args, label: "slide" })));
    expect(new Set(ids).size).to.equal(calls.length);
  });

  /** The id of the approval that this call waits for. */
  async function ask(call: Call): Promise<string> {
    const { args, tool = "echo", label, person = "agent", id = "1", meta, params = "", modern = false } = call;
    const metaText = meta === undefined ? "" : `,"_meta":{${meta}}`;
    const body = `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"${tool}","arguments":${args}${metaText}${params}}}`;
    const headers = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "x-api-key": site.key(person),
      ...(label === undefined ? {} : { "x-gateway-session-id": label }),
      ...(modern ? { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": tool } : {}),
    };
    const answer = await client.request({ method: "POST", path: "/mcp", headers, body });
    const text = await answer.body.text();
    return heldId({ status: answer.statusCode, ...JSON.parse(text) });
  }
});
