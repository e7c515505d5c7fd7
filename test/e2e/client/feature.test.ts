import { expect } from "chai";
import type { JsonObject } from "../../../core/action/json.ts";
import {
  awaitNotification,
  clientKinds,
  connectClient,
  directKind,
  type McpClient,
  type Notification,
} from "../../support/mcp-client.ts";
import { everythingServer } from "./server-program.ts";
import { steady } from "./steady.ts";
import { openWorld, type World } from "./world.ts";

const documentUri = "demo://resource/static/document/architecture.md";
const dynamicUri = "demo://resource/dynamic/text/7";

/** What the two clients are asked for, and the answer each must hand on alike. */
const questions: readonly (readonly [title: string, ask: (client: McpClient) => Promise<unknown>])[] = [
  ["the list of prompts", (client) => client.listPrompts()],
  ["a prompt without arguments", (client) => client.getPrompt("simple-prompt")],
  ["a prompt with all arguments", (client) => client.getPrompt("args-prompt", { city: "Köln", state: "NRW" })],
  ["a prompt with the required argument alone", (client) => client.getPrompt("args-prompt", { city: "Rome" })],
  [
    "a prompt with a resource",
    (client) => client.getPrompt("resource-prompt", { resourceType: "Blob", resourceId: "3" }),
  ],
  ["the list of resources", (client) => client.listResources()],
  ["the list of resource templates", (client) => client.listResourceTemplates()],
  ["a listed resource", (client) => client.readResource(documentUri)],
  ["a text resource of a template", (client) => client.readResource(dynamicUri)],
  ["a binary resource of a template", (client) => client.readResource("demo://resource/dynamic/blob/8")],
  ["completion of a prompt's argument", (client) => client.complete(prompt, { name: "department", value: "S" })],
  [
    "completion that depends on another argument",
    (client) => client.complete(prompt, { name: "name", value: "" }, { department: "Marketing" }),
  ],
  ["completion of a template's variable", (client) => client.complete(template, { name: "resourceId", value: "12" })],
];
const prompt = { type: "ref/prompt", name: "completable-prompt" } as const;
const template = { type: "ref/resource", uri: "demo://resource/dynamic/text/{resourceId}" } as const;

/** Where the stateless revision wants to hear how long an answer may be kept; what depends on the caller, never. */
const cacheable = /list of|resource of|listed resource/;

/** What is refused by the server itself must be refused with its own words. */
const mistakes: readonly (readonly [title: string, ask: (client: McpClient) => Promise<unknown>])[] = [
  ["a prompt without its required argument", (client) => client.getPrompt("args-prompt", {})],
  ["a resource its template does not have", (client) => client.readResource("demo://resource/dynamic/text/none")],
  ["completion of a prompt that is not there", (client) => client.complete({ ...prompt, name: "nobody" }, none)],
];
const none = { name: "x", value: "" };

async function errorOf(attempt: Promise<unknown>): Promise<{ code: unknown; message: string }> {
  return attempt.then(
    (value) => expect.fail(`expected an error, got ${JSON.stringify(value)}`),
    (error: Error & { code?: unknown }) => ({ code: error.code, message: error.message }),
  );
}

describe("what MCP has beside tools, through the gateway", () => {
  let world: World;

  before(async () => {
    world = await openWorld({ servers: () => ({ every: everythingServer() }) });
  });

  after(() => world?.stop());

  for (const kind of clientKinds) {
    describe(`with the client ${kind}`, () => {
      let direct: McpClient;
      let governed: McpClient;

      before(async () => {
        direct = await connectClient(directKind(kind), everythingServer());
        governed = await world.connect(kind);
      });

      after(() => direct?.close());

      for (const [title, ask] of questions) {
        it(`gives the same answer: ${title}`, async () => {
          const expected = steady(await ask(direct)) as JsonObject;
          const hint = kind === "v2 modern" && cacheable.test(title) ? { ttlMs: 0, cacheScope: "private" } : {};
          expect(steady(await ask(governed))).to.deep.equal({ ...expected, ...hint });
        });
      }

      for (const [title, ask] of mistakes) {
        it(`gives the same error, which is the server's own: ${title} [R1.1-5]`, async () => {
          const expected = await errorOf(ask(direct));
          expect(await errorOf(ask(governed))).to.deep.equal(expected);
        });
      }

      it("streams the progress of a long call, as the server reports it [R6-4]", async () => {
        const args = { duration: 1, steps: 4 };
        const call = async (client: McpClient): Promise<readonly unknown[]> => {
          const seen: unknown[] = [];
          const onProgress = (one: unknown): void => void seen.push(one);
          const { content } = await client.callTool("trigger-long-running-operation", args, { onProgress });
          // The last comes together with the answer, after which an SDK may no longer listen.
          return [...seen.slice(0, 3), content];
        };
        const expected = await call(direct);
        expect(expected.slice(0, 3)).to.deep.equal([1, 2, 3].map((progress) => ({ progress, total: 4 })));
        expect(await call(governed)).to.deep.equal(expected);
      });

      it("tells the server of a cancelled call, by the server's own request id", async () => {
        const abort = new AbortController();
        const before = world.received("every").length;
        const call = governed.callTool(
          "trigger-long-running-operation",
          { duration: 3, steps: 30 },
          { signal: abort.signal, onProgress: () => abort.abort() },
        );
        await errorOf(call);
        const cancelled = await waitFor(() =>
          world
            .received("every")
            .slice(before)
            .find(({ method }) => method === "notifications/cancelled"),
        );
        const calls = world
          .received("every")
          .slice(before)
          .filter(({ method }) => method === "tools/call");
        expect(calls.length).to.equal(1);
        expect(cancelled.params?.requestId).to.equal(calls[0]?.id);
      });

      it("says when a resource it subscribed to has changed", async () => {
        await governed.subscribe(documentUri);
        await governed.callTool("toggle-subscriber-updates");
        const { params } = await awaitNotification(governed, updated(documentUri));
        expect(params?.uri).to.equal(documentUri);
        await governed.callTool("toggle-subscriber-updates");
        await governed.unsubscribe(documentUri);
      });

      it("sees a resource that a call has made, and hears that the list has changed", async () => {
        const name = `${kind.replace(" ", "-")}.gz`;
        if (kind !== "v2 modern") await governed.listResources();
        const result = await governed.callTool("gzip-file-as-resource", { name, data: "data:text/plain,hello" });
        const { uri } = result.content[0] as unknown as { uri: string };
        if (kind !== "v2 modern") await awaitNotification(governed, ({ method }) => method === listChanged);
        const { resources } = await governed.listResources();
        expect(resources.map((resource) => resource.uri)).to.include(uri);
        const { contents } = (await governed.readResource(uri)) as { contents: readonly { blob: string }[] };
        expect(Buffer.from(contents[0]?.blob ?? "", "base64").subarray(0, 2)).to.deep.equal(Buffer.from([0x1f, 0x8b]));
      });
    });
  }
});

const listChanged = "notifications/resources/list_changed";

function updated(uri: string): (notification: Notification) => boolean {
  return ({ method, params }) => method === "notifications/resources/updated" && params?.uri === uri;
}

async function waitFor<T>(read: () => T | undefined, deadlineMs: number = 60_000): Promise<T> {
  const end = performance.now() + deadlineMs;
  for (;;) {
    const value = read();
    if (value !== undefined) return value;
    if (performance.now() > end) throw new Error(`expected it within ${deadlineMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
