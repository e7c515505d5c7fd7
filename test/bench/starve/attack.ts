import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "undici";
import { WebSocket } from "ws";
import { lookupCall } from "../target.ts";
import { refusalIn, type Tally } from "./tally.ts";

/** A gateway, one key of a viewer, and where the answers are counted. */
export interface Ground {
  readonly url: string;
  readonly key: string;
  readonly tally: Tally;
}

export interface Attack {
  readonly title: string;
  /** Configuration that the attack needs to be possible at all. */
  readonly config?: string;
  /** Comes before anything is measured. */
  readonly prepare?: (ground: Ground) => Promise<void>;
  /** Goes on until its process is ended, and may resolve before, where it has nothing more to do. */
  readonly run: (ground: Ground) => Promise<void>;
}

/** Numbers of empty objects: as many as 147 kB hold, and as few as a bound of 10,000 nodes lets through; each counts twice. */
const wideNodes = [49_000, 4_900] as const;
const wideLists = wideNodes.map((count) => Array.from({ length: count }, () => ({})));

/** What one key of a viewer can do to the others, by name. */
export const attacks: Readonly<Record<string, Attack>> = {
  wide: {
    title: `bodies of ${wideNodes.join(" and of ")} empty objects`,
    run: (ground) => {
      const bodies = wideLists.map((items) => toolCall("lookup", { items }));
      return flood(ground, 16, (n) => bodies[n % bodies.length] as string);
    },
  },
  deep: {
    title: "bodies 55 and 50,000 levels deep",
    run: (ground) => {
      const within = Array.from({ length: 150 }, () => JSON.parse(nested(55)) as unknown);
      const bodies = [
        toolCall("lookup", { within }),
        toolCall("lookup", {}).replace("{}", `{"beyond":${nested(50_000)}}`),
      ];
      return flood(ground, 16, (n) => bodies[n % bodies.length] as string);
    },
  },
  blocked: {
    title: "bodies of 4 MB that are blocked",
    run: (ground) => {
      const body = toolCall("wipe", { pages: Array.from({ length: 4 }, () => "page of text. ".repeat(74_000)) });
      return flood(ground, 4, () => body);
    },
  },
  models: {
    title: "model requests of 4 MB with 90,000 members",
    config:
      "providers: [{ name: mock, type: mock, models: [m] }]\n" +
      "model_gateway: { routes: [{ model: m, providers: [{ name: mock }] }] }\n",
    run: (ground) => {
      const members = (of: number): object =>
        Object.fromEntries(Array.from({ length: 9_000 }, (_, at) => [`member-${of}-${at}-${"n".repeat(20)}`, at]));
      const metadata = Array.from({ length: 10 }, (_, of) => members(of));
      const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "x" }], metadata });
      return flood(ground, 4, () => body, "/v1/chat/completions");
    },
  },
  sessions: { title: "200 times `initialize`", run: openSessions },
  sockets: { title: "1,000 sockets", run: (ground) => openSockets(ground, 1_000, keyOf(ground)) },
  strangers: { title: "1,000 sockets without a key", run: (ground) => openSockets(ground, 1_000, {}) },
  watchers: {
    title: "2,000 watchers of `decisions`, and calls",
    // A quarter of the places for one key, and a call for each subscription.
    config: "limits: { max_websockets: 8000, key_calls_per_minute: 4000 }\n",
    prepare: watchDecisions,
    run: (ground) => flood(ground, 4, lookupCall),
  },
  reviews: {
    title: "reviews, each under a session label of its own",
    run: (ground) => {
      const body = toolCall("change", { id: "customer-1" });
      return flood(ground, 16, () => body);
    },
  },
  evaluate: { title: `\`evaluate\` of ${wideNodes[1]} empty objects over 4 sockets`, run: evaluateOn },
};

type Headers = Readonly<Record<string, string>>;

function keyOf({ key }: Ground): Headers {
  return { "x-api-key": key };
}

/** Keeps connections busy with one request each at a time, each in a session of its own, which nothing stopped yet. */
async function flood(
  { url, key, tally }: Ground,
  connections: number,
  body: (n: number) => string,
  path = "/mcp",
): Promise<void> {
  let count = 0;
  const drive = async (): Promise<void> => {
    const client = new Client(url, { pipelining: 1 });
    for (;;) {
      const n = count++;
      await post(client, key, body(n), { "x-gateway-session-id": `attack-${n}` }, path).then(
        ({ status, text }) => tally.add(status, refusalIn(text)),
        async (error: Error) => {
          tally.add("no answer", error.message);
          await sleep(10);
        },
      );
    }
  };
  await Promise.all(Array.from({ length: connections }, drive));
}

interface Posted {
  readonly status: number;
  readonly text: string;
  readonly session: string;
}

async function post(client: Client, key: string, body: string, more: Headers = {}, path = "/mcp"): Promise<Posted> {
  const headers = { "content-type": "application/json", "x-api-key": key, ...more };
  const response = await client.request({ method: "POST", path, headers, body });
  const text = await response.body.text();
  return { status: response.statusCode, text, session: String(response.headers["mcp-session-id"] ?? "") };
}

/** Opens sessions and calls a tool in each, which opens its connections to the upstreams. */
async function openSessions({ url, key, tally }: Ground): Promise<void> {
  const capabilities = {};
  const clientInfo = { name: "bench", version: "1" };
  const params = { protocolVersion: "2025-11-25", capabilities, clientInfo };
  const initialize = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params });
  let left = 200;
  const open = async (): Promise<void> => {
    const client = new Client(url, { pipelining: 1 });
    while (left-- > 0) {
      const { status, text, session } = await post(client, key, initialize);
      tally.add(status, refusalIn(text));
      if (session !== "") await post(client, key, lookupCall(1), { "mcp-session-id": session });
    }
  };
  await Promise.all(Array.from({ length: 8 }, open));
}

function watchDecisions(ground: Ground): Promise<void> {
  const subscribe = JSON.stringify({ type: "subscribe", payload: { channels: ["decisions"] } });
  return openSockets(ground, 2_000, keyOf(ground), (socket) => socket.send(subscribe));
}

/** Tries to open so many sockets, 50 at a time, and holds those that open. */
async function openSockets(
  ground: Ground,
  wanted: number,
  headers: Headers,
  onOpen: (socket: WebSocket) => void = () => undefined,
): Promise<void> {
  let left = wanted;
  const open = async (): Promise<void> => {
    while (left-- > 0) {
      const socket = await connect(ground, headers);
      if (socket !== null) onOpen(socket);
    }
  };
  await Promise.all(Array.from({ length: 50 }, open));
}

/** Resolves with an open socket, or null where it was refused. A socket that is closed later is counted too. */
function connect({ url, tally }: Ground, headers: Headers): Promise<WebSocket | null> {
  const socket = new WebSocket(`${url.replace("http", "ws")}/v1/ws`, {
    headers,
    skipUTF8Validation: true,
    handshakeTimeout: 10_000,
  });
  return new Promise((resolve) => {
    socket.once("open", () => {
      tally.add("opened");
      resolve(socket);
    });
    socket.once("unexpected-response", (_, response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => {
        text += chunk;
      });
      response.once("end", () => tally.add(response.statusCode ?? 0, refusalIn(text)));
      resolve(null);
    });
    socket.on("error", (error) => {
      tally.add("no answer", error.message);
      resolve(null);
    });
    socket.once("close", (code, reason) => tally.add(`closed ${code}`, String(reason)));
  });
}

/** Keeps as many evaluations in flight as a socket may have. */
async function evaluateOn(ground: Ground): Promise<void> {
  const action = { capability: "write", target: "bench", tool: "change", arguments: { items: wideLists[1] } };
  const message = JSON.stringify({ type: "evaluate", payload: { action } });
  const open = async (): Promise<void> => {
    const socket = await connect(ground, keyOf(ground));
    socket?.on("message", (data) => {
      const { type, payload } = JSON.parse(String(data)) as { type: string; payload: { message?: string } };
      if (type === "auth_ok") return;
      ground.tally.add(type, payload.message);
      socket.send(message);
    });
    for (let evaluation = 0; evaluation < 8; evaluation++) socket?.send(message);
  };
  await Promise.all(Array.from({ length: 4 }, open));
}

function toolCall(name: string, args: object): string {
  return JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } });
}

function nested(levels: number): string {
  return "[".repeat(levels) + "]".repeat(levels);
}
