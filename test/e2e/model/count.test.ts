import { expect } from "chai";
import { scripts } from "../../fixture/model-provider.ts";
import { type ModelWorld, openModelWorld } from "./world.ts";

const rules = `  - id: open.secret
    title: What nobody counts
    decision: block
    match: { phase: input, tool: messages.count_tokens }
    when: leaves(arguments, 16000).exists(leaf, leaf.text.contains("classified"))
    message: classified
  - id: open.careful
    title: What a person has to see
    decision: review
    match: { phase: input, tool: messages.count_tokens }
    when: leaves(arguments, 16000).exists(leaf, leaf.text.contains("careful"))
    message: careful
`;
const tools = [{ name: "Read", input_schema: { type: "object" }, cache_control: { type: "ephemeral" } }];

interface Counted {
  readonly status: number;
  readonly text: string;
  json(): { readonly input_tokens?: number; readonly error?: Readonly<Record<string, unknown>> };
}

describe("POST /v1/messages/count_tokens", () => {
  let world: ModelWorld;
  before(async () => {
    world = await openModelWorld({ rules, provider: "max_retries: 0" });
  });
  after(() => world.stop());

  async function count(body: object, headers: Readonly<Record<string, string>> = {}): Promise<Counted> {
    const response = await fetch(`${world.gateway.url}/v1/messages/count_tokens`, {
      method: "POST",
      headers: { "x-api-key": world.keys.agent, "content-type": "application/json", ...headers },
      body: JSON.stringify({ model: "messages-model", messages: [{ role: "user", content: "hello" }], ...body }),
    });
    const text = await response.text();
    return { status: response.status, text, json: () => JSON.parse(text) as ReturnType<Counted["json"]> };
  }

  const asked = (): number => world.provider.calls.length;

  it("asks a provider that can count, with the judged request, and returns its answer as it came", async () => {
    const before = (await world.records()).length;
    const answer = '{ "input_tokens":2095,\n "context_management":{"original_input_tokens":9000} }';
    world.provider.next(scripts.says(200, answer));
    const beta = { "anthropic-version": "2023-06-01", "anthropic-beta": "token-counting-2024-11-01" };
    const told = await count({ tools, system: "Be brief." }, beta);
    expect([told.status, told.text]).to.deep.equal([200, answer]);
    const call = world.provider.calls.at(-1);
    expect(call?.path).to.equal("/v1/messages/count_tokens");
    expect(call?.headers).to.include({ ...beta, accept: "application/json", "x-api-key": world.providerKey });
    const messages = [{ role: "user", content: "hello" }];
    expect(call?.body).to.deep.equal({ model: "claude-1", messages, tools, system: "Be brief." });
    const [decision, outcome, ...more] = (await world.records()).slice(before);
    expect(more).to.deep.equal([]);
    for (const [record, kind, effect] of [
      [decision, "decision", "dispatched"],
      [outcome, "outcome", "success"],
    ] as const) {
      expect(record).to.include({ kind, effect });
      expect(record?.action).to.include({
        protocol: "model",
        tool: "messages.count_tokens",
        target: "claude/claude-1",
        capability: "generate",
      });
    }
  });

  it("uses no tokens of the caller's", async () => {
    world.provider.next(scripts.says(200, { input_tokens: 5 }));
    await count({});
    const headers = { "x-api-key": world.keys.operator };
    const response = await fetch(`${world.gateway.adminUrl}/admin/v1/usage`, { headers });
    expect(((await response.json()) as { totals: object }).totals).to.include({ requests: 0, input_tokens: 0 });
  });

  for (const [word, code] of [
    ["classified", "policy_blocked"],
    ["careful", "approval_required"],
  ] as const) {
    it(`sends nothing that policy does not let go: ${code}`, async () => {
      const before = asked();
      const told = await count({ system: `This is ${word}.` });
      expect(told.status).to.equal(403);
      expect(told.json().error).to.include({ type: "permission_error", code });
      expect(asked()).to.equal(before);
    });
  }

  it("sends no tool that a provider runs", async () => {
    const before = asked();
    const told = await count({ mcp_servers: [{ type: "url", url: "https://mcp.example", name: "x" }] });
    expect(told.status).to.equal(400);
    expect(told.json().error).to.include({ code: "tools_disabled" });
    expect(asked()).to.equal(before);
  });

  for (const status of [404, 405]) {
    it(`counts here where the provider has no such path: ${status}`, async () => {
      world.provider.next(scripts.says(status));
      const told = await count({ system: "hello ".repeat(100) });
      expect(told.status).to.equal(200);
      expect(told.json().input_tokens).to.be.within(90, 130);
      expect((await world.records()).at(-1)).to.include({ kind: "outcome", effect: "error" });
    });
  }

  it("responds with the provider's error where it fails or refuses", async () => {
    const error = { type: "invalid_request_error", message: "max_tokens: Extra inputs are not permitted" };
    world.provider.next(scripts.says(400, { type: "error", error }), scripts.says(503));
    const refused = await count({});
    expect(refused.status).to.equal(400);
    expect(refused.json().error).to.deep.equal(error);
    const failed = await count({});
    expect(failed.status).to.equal(502);
    expect(failed.json().error).to.include({ code: "provider_unavailable" });
  });

  it("counts here, and asks nobody, where the provider speaks another API", async () => {
    const [before, records] = [asked(), (await world.records()).length];
    const told = await count({ model: "chat-model", tools, system: "hello ".repeat(100) });
    expect(told.status).to.equal(200);
    expect(told.json().input_tokens).to.be.within(100, 160);
    expect(asked()).to.equal(before);
    expect(await world.records()).to.have.length(records);
  });
});
