import { expect } from "chai";
import {
  awaitNotification,
  type ClientSide,
  connectClient,
  directKind,
  handshakeKinds,
  type Notification,
} from "../../support/mcp-client.ts";
import { everythingServer } from "./server-program.ts";
import { openWorld, type World } from "./world.ts";

const documentUri = "demo://resource/static/document/architecture.md";
const dynamicUri = "demo://resource/dynamic/text/7";
const message = "notifications/message";

describe("a session through the gateway", () => {
  let world: World;

  before(async () => {
    world = await openWorld({ servers: () => ({ every: everythingServer() }) });
  });

  after(() => world?.stop());

  for (const kind of handshakeKinds) {
    describe(`of the client ${kind}`, () => {
      it("sets the level of logging at the server, which holds to it", async () => {
        const client = await world.connect(kind);
        const received = (): readonly Notification[] => client.notifications.filter(({ method }) => method === message);
        await client.setLoggingLevel("info");
        await client.subscribe(dynamicUri);
        const { params } = await awaitNotification(client, ({ method }) => method === message);
        expect(params).to.deep.include({ level: "info" });
        expect(params?.data).to.include(`Received Subscribe Resource request for URI: ${dynamicUri}`);
        await client.setLoggingLevel("error");
        const before = received().length;
        await client.unsubscribe(dynamicUri);
        await client.callTool("echo", { message: "the server has answered all that came before" });
        expect(received().length).to.equal(before);
      });

      it("hands the client's refusal and its errors back to the server", async () => {
        const decline: ClientSide = {
          elicitation: () => ({ action: "decline" }),
          sampling: () => {
            throw new Error("the user said no");
          },
        };
        const direct = await connectClient(directKind(kind), everythingServer(), decline);
        const governed = await world.connect(kind, decline);
        for (const tool of ["trigger-elicitation-request", "trigger-sampling-request"]) {
          const args = { prompt: "x" };
          const expected = await direct.callTool(tool, args);
          expect(await governed.callTool(tool, args), tool).to.deep.equal(expected);
        }
        await direct.close();
      });

      it("tells the server that the client's roots have changed", async () => {
        let roots = [{ uri: "file:///one", name: "one" }];
        const client = await world.connect(kind, { roots: () => ({ roots }) });
        await client.callTool("get-roots-list");
        roots = [...roots, { uri: "file:///two", name: "two" }];
        await client.rootsChanged();
        await awaitNotification(client, ({ params }) => String(params?.data).startsWith("Roots updated: 2 root(s)"));
        const { content } = await client.callTool("get-roots-list");
        expect(content[0]?.text).to.include("file:///two");
      });

      it("keeps sessions apart: what one subscribes to or logs, another never hears", async () => {
        const [one, other] = [await world.connect(kind), await world.connect(kind)];
        await one.setLoggingLevel("info");
        await one.subscribe(documentUri);
        await one.callTool("toggle-subscriber-updates");
        await awaitNotification(one, updated(documentUri));
        await other.callTool("echo", { message: "x" });
        const heard = other.notifications.map(({ method }) => method);
        expect(heard).not.to.include(message).and.not.to.include("notifications/resources/updated");
        await one.callTool("toggle-subscriber-updates");
      });
    });
  }
});

function updated(uri: string): (notification: Notification) => boolean {
  return ({ method, params }) => method === "notifications/resources/updated" && params?.uri === uri;
}
