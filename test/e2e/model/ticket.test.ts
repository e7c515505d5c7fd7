import { expect } from "chai";
import { principalId } from "../../../core/action/principal.ts";
import { askModel, type Told } from "./ask.ts";
import { type ModelWorld, openModelWorld, sha256 } from "./world.ts";

const rules = `  - id: open.ticket
    title: Models need a ticket
    decision: block
    match: { phase: input, protocol: model }
    require_ticket: true
    message: models cost money
`;

describe("a model request that needs a capability ticket", () => {
  let world: ModelWorld;

  before(async () => {
    world = await openModelWorld({ rules });
  });

  after(() => world.stop());

  async function issue(api: "chat" | "messages"): Promise<string> {
    const target = api === "chat" ? "open/*" : "claude/*";
    const principal = principalId("acme", `sha256:${sha256(world.keys.agent)}`);
    const scope = { tools: ["*"], targets: [target], capabilities: ["generate"] };
    const response = await fetch(`${world.gateway.adminUrl}/admin/v1/tickets`, {
      method: "POST",
      headers: { "x-api-key": world.keys.operator, "content-type": "application/json" },
      body: JSON.stringify({ principal, ...scope, max_uses: 1 }),
    });
    return ((await response.json()) as { token: string }).token;
  }

  function ask(api: "chat" | "messages", token: string | undefined, stream: boolean): Promise<Told> {
    return askModel(world, { api, stream, headers: token === undefined ? {} : { "x-gateway-ticket": token } });
  }

  for (const api of ["chat", "messages"] as const) {
    for (const stream of [false, true]) {
      it(`is served once with one: ${api}, ${stream ? "streamed" : "whole"}`, async () => {
        const asked = (): number => world.provider.calls.length;
        const before = asked();
        expect((await ask(api, undefined, stream)).text).to.match(/needs a capability ticket: none was presented/);
        const token = await issue(api);
        const other = api === "chat" ? "messages" : "chat";
        expect((await ask(other, token, stream)).text).to.match(/needs a capability ticket: out_of_scope/);
        expect(asked()).to.equal(before);
        expect((await ask(api, token, stream)).status).to.equal(200);
        expect(asked()).to.equal(before + 1);
        const again = await ask(api, token, stream);
        expect([again.status, asked()]).to.deep.equal([403, before + 1]);
        expect(again.text).to.match(/needs a capability ticket: used_up/);
        expect(JSON.stringify(world.provider.calls)).to.not.include(token.split(".")[2]);
      });
    }
  }
});
