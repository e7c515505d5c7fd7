import { expect } from "chai";
import { scripts } from "../../fixture/model-provider.ts";
import { hostileNames } from "../../support/hostile-name.ts";
import { askModel } from "./ask.ts";
import { type ModelWorld, openModelWorld } from "./world.ts";

interface Delta {
  readonly choices?: readonly { readonly delta?: { readonly content?: string } }[];
  readonly delta?: { readonly text?: string };
}

describe("what a model says, streamed", () => {
  let world: ModelWorld;
  before(async () => {
    world = await openModelWorld();
  });
  after(() => world.stop());

  for (const api of ["chat", "messages"] as const) {
    it(`is in the data of its events and makes none of its own, by the ${api} API [S67]`, async () => {
      for (const { what, text } of hostileNames) {
        world.provider.next(scripts.answers({ text }));
        const told = await askModel(world, { api, stream: true });
        expect(told.headers.get("content-type")).to.match(/^text\/event-stream/);
        expect(told.headers.get("x-content-type-options")).to.equal("nosniff");
        const lines = told.text.split("\n");
        expect(
          lines.filter((line) => !/^(?:data: [^\n]*|event: (?:message|content_block|ping)\w*|)$/.test(line)),
          what,
        ).to.deep.equal([]);
        expect(
          lines.filter((line) => line.includes("forged") && !line.startsWith("data: ")),
          what,
        ).to.deep.equal([]);
        const data = lines.flatMap((line) => (line.startsWith("data: {") ? [JSON.parse(line.slice(6)) as Delta] : []));
        const said = data.map(({ choices, delta }) => choices?.[0]?.delta?.content ?? delta?.text ?? "").join("");
        expect(said, what).to.equal(text);
      }
    });
  }
});
