import { expect } from "chai";
import { chatAnswer, chatChunks, GuardedSite, token } from "./guarded-site.ts";

const said = `The token is ${token}.`;
const uri = "note://token";
const answers = {
  text: { result: { content: [{ type: "text", text: said }] } },
  structure: { result: { content: [], structuredContent: { rows: [{ token }] } } },
  embedded: { result: { content: [{ type: "resource", resource: { uri, text: said } }] } },
  failure: { error: { code: 4_711, message: said, data: { detail: said } } },
  "resources/list": { result: { resources: [{ uri, name: "note" }] } },
  "resources/templates/list": { result: { resourceTemplates: [] } },
  "resources/read": { result: { contents: [{ uri, text: said }] } },
};

describe("a token in an answer, with the shipped plugin `secret-egress` in phase `output`", () => {
  let site: GuardedSite;
  before(async () => {
    site = await GuardedSite.open(["secret-egress"], answers);
  });
  after(() => site?.stop());

  const shapes: Readonly<Record<string, () => Promise<string>>> = {
    "the text of a result": () => site.call("text"),
    "the structured content of a result": () => site.call("structure"),
    "an embedded resource": () => site.call("embedded"),
    "an error of the server": async () => String(await site.call("failure").catch((error: Error) => error)),
    "a resource": () => site.readResource(uri),
    "a whole answer of a model": async () => (await site.whole("chat", chatAnswer({ content: said }))).text,
    "a stream of a model": async () => (await site.streamed("chat", chatChunks([{ content: said }]))).text,
    "an error of a provider": async () => (await site.whole("chat", { error: { message: said, type: "e" } })).text,
  };
  for (const [where, ask] of Object.entries(shapes)) {
    it(`is redacted: ${where} [S59]`, async () => {
      expect(await ask())
        .to.include("[redacted]")
        .and.not.include(token);
    });
  }
});
