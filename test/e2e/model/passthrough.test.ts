import { expect } from "chai";
import type { ModelApi } from "../../../core/action/model-api.ts";
import { scripts } from "../../fixture/model-provider.ts";
import { recordedApi, recordedBytes, recordedNames } from "../../support/recorded-stream.ts";
import { openModel } from "./ask.ts";
import { type ModelWorld, openModelWorld } from "./world.ts";

/** Some recordings end in an error, as often as they are played. */
const provider = "breaker: { failures: 1000 }";

/** What a provider may send between and in its events that says nothing, or says it otherwise. */
const manners: Readonly<Record<string, (text: string) => string>> = {
  "as it was recorded": (text) => text,
  "with CRLF": (text) => text.replaceAll(/\r?\n/g, "\r\n"),
  "with a byte order mark": (text) => `\ufeff${text}`,
  "with comments": (text) => `: hello\n\n${text.replaceAll(/(\r?\n){2}(?!$)/g, "$&: ping\n\n")}`,
};

/** Whole answers, as no serializer of ours would write them. */
const wholes: Readonly<Record<ModelApi, string>> = {
  chat: `{ "object":"chat.completion",\n  "id":"chatcmpl-1","created":1.76e9, "model":"m\\u0031","x_unknown":{"a":[1.0,-0,1e2]},
  "choices":[{"index":0,"message":{"role":"assistant","content":"Gr\\u00fc\\u00dfe \\/ 🦊","refusal":null},"finish_reason":"stop"}],
  "usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3} }\n`,
  messages: `{ "type":"message", "role":"assistant",\t"id":"msg_1","model":"m\\u0031","x_unknown":{"a":[1.0,-0,1e2]},
  "content":[{"type":"text","text":"Gr\\u00fc\\u00dfe \\/ 🦊","citations":null}],"stop_reason":"end_turn","stop_sequence":null,
  "usage":{"input_tokens":1,"output_tokens":2} }\n`,
  responses: `{ "object":"response",\n  "id":"resp_1","created_at":1.76e9, "model":"m\\u0031","x_unknown":{"a":[1.0,-0,1e2]},"status":"completed",
  "output":[{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Gr\\u00fc\\u00dfe \\/ 🦊","annotations":[]}]}],
  "usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3} }\n`,
};

describe("an answer that policy leaves alone, of a provider that speaks the client's API", () => {
  for (const [title, settings] of [
    ["held back until it is judged", "tool_passthrough: client"],
    ["with nothing held back", "tool_passthrough: client\n  holdback_bytes: 0"],
  ] as const) {
    describe(title, () => {
      let world: ModelWorld;
      before(async () => {
        world = await openModelWorld({ provider, settings });
      });
      after(() => world.stop());

      async function answerTo(api: ModelApi, stream: boolean): Promise<Buffer> {
        const body = stream && api === "chat" ? { stream_options: { include_usage: true } } : {};
        const response = await openModel(world, { api, stream, body });
        expect(response.status).to.equal(200);
        return Buffer.from(await response.arrayBuffer());
      }

      for (const name of recordedNames()) {
        const api = recordedApi(name);
        for (const [manner, render] of Object.entries(manners)) {
          it(`comes byte for byte, however it is cut: ${name} ${manner}`, async () => {
            const bytes = Buffer.from(render(Buffer.from(recordedBytes(name)).toString()));
            for (const size of [1, 2, 7, 61, bytes.length]) {
              world.provider.next(scripts.streams(cut(bytes, size)));
              expect((await answerTo(api, true)).equals(bytes), `pieces of ${size}`).to.equal(true);
            }
          });
        }
      }

      for (const api of ["chat", "messages", "responses"] as const) {
        it(`comes byte for byte: a whole answer of ${api}`, async () => {
          world.provider.next(scripts.says(200, wholes[api]));
          expect((await answerTo(api, false)).toString()).to.equal(wholes[api]);
        });
      }
    });
  }
});

function cut(bytes: Buffer, size: number): readonly Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size));
}
