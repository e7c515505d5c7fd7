import { expect } from "chai";
import { lure, TaintWorld } from "../e2e/model/taint-world.ts";
import { scripts } from "../fixture/model-provider.ts";
import { answerEvents } from "../fixture/model-reply.ts";
import { roundsOf } from "../support/rounds.ts";

/** How often the gateway is killed. */
const rounds = roundsOf(1, 3);

describe("when the gateway is killed as soon as a client saw what taints its session", () => {
  let world: TaintWorld;

  before(async () => {
    world = await TaintWorld.open();
  });

  after(() => world?.stop());

  for (let round = 1; round <= rounds; round++) {
    it(`is still tainted by a part of a model's answer (${round})`, async () => {
      const label = await world.newLabel();
      const text = `I write to Eve, ${lure}. ${"More follows. ".repeat(200)}`;
      world.provider.next(scripts.stalls(answerEvents("chat", { text }).slice(0, -4)));
      await readUntil(await ask(label), lure);
      await world.gateway.kill9();
      await world.startAgain();
      expect(await world.isHeld(label)).to.equal(true);
      expect(await world.isHeld(await world.newLabel())).to.equal(false);
    });

    it(`is still tainted by the answer of an untrusted tool (${round})`, async () => {
      const label = await world.newLabel();
      const client = await world.connect(label);
      await client.callTool("fetch");
      await world.gateway.kill9();
      await client.close();
      await world.startAgain();
      expect(await world.isHeld(label)).to.equal(true);
    });
  }

  function ask(label: string): Promise<Response> {
    return fetch(`${world.gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "x-api-key": world.keys.agent, "content-type": "application/json", "x-gateway-session-id": label },
      body: JSON.stringify({ model: "chat-model", stream: true, messages: [{ role: "user", content: "and now?" }] }),
    });
  }
});

/** Reads the texts of a chat stream until they hold `wanted`; throws where the stream ends before. */
async function readUntil(response: Response, wanted: string): Promise<void> {
  const decoder = new TextDecoder();
  let raw = "";
  for await (const bytes of response.body ?? []) {
    raw += decoder.decode(bytes as Uint8Array, { stream: true });
    const said = [...raw.matchAll(/"content":"((?:[^"\\]|\\.)*)"/g)].map(([, text]) => text).join("");
    if (said.includes(wanted)) return;
  }
  throw new Error(`expected the stream to say \`${wanted}\`, got ${raw}`);
}
