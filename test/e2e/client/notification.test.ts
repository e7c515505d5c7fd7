import { join } from "node:path";
import { expect } from "chai";
import { formsOf } from "../../support/canary.ts";
import { choosingPlugin } from "../../support/choosing-plugin.ts";
import { filesWith } from "../../support/disk-search.ts";
import { folderOf } from "../../support/first-party.ts";
import { awaitNotification, clientKinds, handshakeKinds, type Progress } from "../../support/mcp-client.ts";
import { PackFolders } from "../../support/policy-pack.ts";
import { scriptedServer } from "./server-program.ts";
import { openWorld, type World } from "./world.ts";

const mail = "w4kz9.tq1@example.com";
/** What the second policy gives no readable answer to. */
const unreadable = "no policy can say anything of this";
const uri = "note://one";
const times = 3_000;
/** What takes long to judge. */
const long = `to ${mail} ${"word ".repeat(18_000)}`;

const progress = (step: number, message: string): object => ({
  method: "notifications/progress",
  params: { progress: step, total: 3, message },
});
const log = (data: unknown): object => ({ method: "notifications/message", params: { level: "info", data } });
const done = { result: { content: [{ type: "text", text: "done" }] } };
const answers = {
  tell: {
    first: [progress(1, `to ${mail}`), progress(2, unreadable), progress(3, "no mail")],
    // An SDK does not listen to progress any more that comes together with the answer.
    delayMs: 200,
    ...done,
  },
  log: { first: [log(`to ${mail}`), log({ [mail]: 1 }), log({ to: [mail] }), log("end")], ...done },
  touch: { first: [{ method: "notifications/resources/updated", params: { uri, title: `of ${mail}` } }], ...done },
  flood: { first: [{ ...progress(1, `to ${mail}`), times }], ...done },
  recite: { first: [{ ...progress(1, long), times: 4 }], ...done },
  "resources/list": { result: { resources: [{ uri, name: "note" }] } },
  "resources/templates/list": { result: { resourceTemplates: [] } },
  "resources/subscribe": { result: {} },
  "resources/unsubscribe": { result: {} },
};

interface Event {
  readonly method?: string;
  readonly params?: Progress & { readonly progressToken?: string };
  readonly result?: object;
}

/** What a client without an SDK reads of the answer to a call, in the order in which it comes. */
async function eventsOf({ gateway, key }: World, tool: string, progressToken: string): Promise<readonly Event[]> {
  const params = { name: tool, arguments: {}, _meta: { progressToken } };
  const response = await fetch(`${gateway.url}/mcp`, {
    method: "POST",
    headers: { "x-api-key": key, "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
  });
  const text = await response.text();
  if (!text.startsWith("event: ")) return [JSON.parse(text) as Event];
  const lines = text.split("\n").filter((line) => line.startsWith("data: "));
  return lines.map((line) => JSON.parse(line.slice("data: ".length)) as Event);
}

/** The sum of a counter over the series whose labels hold `part`. */
async function countOf({ gateway }: World, name: string, part = ""): Promise<number> {
  const text = await (await fetch(`${gateway.metricsUrl}/metrics`)).text();
  const series = text.split("\n").filter((line) => line.startsWith(name) && line.includes(part));
  return series.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

/** All is allowed, and nothing is said of answers. */
const rules = `rules:
  - { id: test.all, title: All, decision: allow, severity: info, risk: 0, match: { phase: [list, input] }, message: allowed }
`;

async function openTelling(policy?: string): Promise<World> {
  const servers = (): Record<string, ReturnType<typeof scriptedServer>> => ({ telling: scriptedServer(answers) });
  return openWorld({ servers, rules, ...(policy === undefined ? {} : { policy }) });
}

const dropped = "gateway_notifications_dropped_total";
const judged = 'phase="output"';

describe("what an upstream says beside its answers", () => {
  const folders = new PackFolders();
  let world: World;
  let open: World;

  before(async () => {
    const choosing = await folders.write(choosingPlugin("choosing", [[unreadable, "{}"]]));
    const paths = [folderOf("pii-guard"), choosing].map((path) => `{ path: "${path}", phases: [output] }`);
    world = await openTelling(`plugins: [${paths.join(", ")}]`);
    open = await openTelling();
  });

  after(async () => {
    await Promise.all([world?.stop(), open?.stop()]);
    await folders.remove();
  });

  for (const kind of clientKinds) {
    describe(`to a client that is ${kind}`, () => {
      async function progressIn(where: World): Promise<readonly Progress[]> {
        const seen: Progress[] = [];
        const client = await where.connect(kind);
        expect(await client.callTool("tell", {}, { onProgress: (one) => seen.push(one) })).to.deep.include(done.result);
        return seen;
      }

      async function updateIn(where: World): Promise<unknown> {
        const client = await where.connect(kind);
        await client.subscribe(uri);
        await client.callTool("touch");
        const { params } = await awaitNotification(
          client,
          ({ method }) => method === "notifications/resources/updated",
        );
        await client.unsubscribe(uri);
        return [params?.uri, params?.title];
      }

      it("[S59] is redacted or dropped in the progress of a call, and the call goes on", async () => {
        const [drops, calls] = [await countOf(world, dropped, "policy"), world.calls("telling").length];
        expect(await progressIn(world)).to.deep.equal([
          { progress: 1, total: 3, message: "to [email]" },
          { progress: 3, total: 3, message: "no mail" },
        ]);
        expect(await countOf(world, dropped, "policy")).to.equal(drops + 1);
        expect(world.calls("telling").length).to.equal(calls + 1);
      });

      it("[S59] is redacted where it is told of a resource unasked", async () => {
        expect(await updateIn(world)).to.deep.equal([uri, "of [email]"]);
      });

      it("is told as it came where no policy reads answers", async () => {
        const before = await countOf(open, "gateway_decisions_total", judged);
        expect((await progressIn(open)).map(({ message }) => message)).to.deep.equal([
          `to ${mail}`,
          unreadable,
          "no mail",
        ]);
        expect(await updateIn(open)).to.deep.equal([uri, `of ${mail}`]);
        const answered = ["resources/subscribe", "resources/unsubscribe", "tell", "touch"];
        const evaluated = (await countOf(open, "gateway_decisions_total", judged)) - before;
        expect(evaluated).to.be.at.most(answered.length);
      });
    });
  }

  for (const kind of handshakeKinds) {
    it(`[S59] is redacted or dropped in a log message that belongs to no call, to a client that is ${kind}`, async () => {
      const logsIn = async (where: World): Promise<unknown[]> => {
        const client = await where.connect(kind);
        await client.callTool("log");
        await awaitNotification(client, ({ params }) => params?.data === "end");
        return client.notifications.map(({ params }) => params?.data);
      };
      const drops = await countOf(world, dropped, "policy");
      expect(await logsIn(world)).to.deep.equal(["to [email]", { to: ["[email]"] }, "end"]);
      expect(await countOf(world, dropped, "policy")).to.equal(drops + 1);
      expect(await logsIn(open)).to.deep.equal([`to ${mail}`, { [mail]: 1 }, { to: [mail] }, "end"]);
    });
  }

  it("is listened for before a client that subscribes is told so", async () => {
    const listed = { ...answers, "resources/list": { ...answers["resources/list"], delayMs: 500 } };
    const slow = await openWorld({ servers: () => ({ telling: scriptedServer(listed) }), rules });
    await (await slow.connect("v2 modern")).subscribe(uri);
    const asked = slow.received("telling").map(({ method }) => method);
    await slow.stop();
    expect(asked).to.include("resources/subscribe");
  });

  it("keeps its order, and comes before the answer; the client's own token is not judged", async () => {
    const events = await eventsOf(world, "tell", mail);
    expect(events.map(({ params, result }) => params?.progress ?? result)).to.deep.equal([1, 3, done.result]);
    expect(events.slice(0, -1).map(({ params }) => params?.progressToken)).to.deep.equal([mail, mail]);
  });

  it("comes before the answer where it takes long to judge, or is counted as dropped", async () => {
    const reading = await openTelling(`plugins: [{ path: "${folderOf("pii-guard")}", phases: [output] }]`);
    const events = await eventsOf(reading, "recite", "t");
    const lost = await countOf(reading, dropped);
    await reading.stop();
    const told = events.slice(0, -1).map(({ params }) => params?.message);
    expect(events.at(-1)?.result).to.deep.equal(done.result);
    // On a busy machine the last of them may have waited too long.
    expect(told[0]).to.equal(long.replace(mail, "[email]"));
    expect(new Set(told).size).to.equal(1);
    expect(told.length + lost).to.equal(4);
  });

  it("is told and redacted, or counted as dropped, each of a flood, before the answer", async () => {
    const drops = await countOf(world, dropped);
    const events = await eventsOf(world, "flood", "t");
    const lost = (await countOf(world, dropped)) - drops;
    const told = events.slice(0, -1);
    expect(events.at(-1)?.result).to.deep.equal(done.result);
    expect(told.every(({ params }) => params?.message === "to [email]")).to.equal(true);
    expect(told.length + lost).to.equal(times);
  });

  it("[S59] leaves nothing of what was redacted or dropped in a log or on the disk", async () => {
    const { gateway } = world;
    expect(gateway.stdout() + gateway.stderr()).to.include("notification_");
    for (const form of [...formsOf(mail), ...formsOf(unreadable)]) {
      expect((gateway.stdout() + gateway.stderr()).includes(form)).to.equal(false);
      expect(await filesWith(join(gateway.folder, "data"), form)).to.deep.equal([]);
    }
  });
});
