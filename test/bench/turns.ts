import { setTimeout as sleep } from "node:timers/promises";
import { echoCall, openWorld, post, type World } from "../e2e/wire/world.ts";
import { until } from "../support/event-stream.ts";
import { tableHead, tableRow } from "./table.ts";

/**
 * How long one large request holds the event loop: calls of the largest body, whose server answers with all of it again. Prints
 * the longest turn of some calls of each kind, whole and without collections of garbage or waiting for a processor; asserts nothing.
 */
const calls = Number(process.env.BENCH_CALLS ?? 8);
const recorder = new URL("../fixture/turn-recorder.js", import.meta.url).href;

const bodies: Readonly<Record<string, string>> = {
  "one text": `{"text":"${"lorem ipsum dolor ".repeat(230_000)}"}`,
  "a text of escapes": `{"text":"${"lor\\n\\u00e9 ip ".repeat(250_000)}"}`,
  "a text of other scripts": `{"text":"${"żółć €漢字 ".repeat(190_000)}"}`,
  "9,900 strings": `{"list":[${`"${"abcdefghij".repeat(41)}",`.repeat(9_900)}"x"]}`,
  "9,900 members in no order": `{${Array.from({ length: 9_900 }, (_, at) => `"m-${at}-${"n".repeat(398)}":"v"`)}}`,
};

const world = await openWorld("", "", undefined, { ownProcess: true, env: { NODE_OPTIONS: `--import ${recorder}` } });
try {
  process.stdout.write(`node ${process.version}, ${calls} calls of each\n\n`);
  process.stdout.write(tableHead(["arguments", "bytes", "longest turn, ms", "without garbage or waiting, ms"]));
  for (const [kind, args] of Object.entries(bodies)) {
    const body = Buffer.from(echoCall(args));
    // The first make V8 compile what the others run.
    await callAll(world, body);
    const { wholeMs, ownMs } = await turnsOf(world, () => callAll(world, body));
    process.stdout.write(tableRow([kind, body.length, wholeMs.toFixed(1), ownMs.toFixed(1)]));
  }
} finally {
  await world.stop();
}

async function callAll(to: World, body: Buffer): Promise<void> {
  for (let call = 0; call < calls; call++) {
    const { status } = await post(to, body);
    if (status !== 200) throw new Error(`expected an answer, got HTTP ${status}`);
    await sleep(100);
  }
}

interface LongestTurn {
  readonly wholeMs: number;
  readonly ownMs: number;
}

/** Measures the gateway's turns while `work` goes on. */
async function turnsOf({ gateway }: World, work: () => Promise<void>): Promise<LongestTurn> {
  const linesOf = (): string[] => gateway.stderr().match(/^\{"event":"turns".*$/gm) ?? [];
  const before = linesOf().length;
  gateway.process.kill("SIGUSR2");
  await work();
  gateway.process.kill("SIGUSR2");
  const line = await until(async () => linesOf()[before]);
  return JSON.parse(line as string) as LongestTurn;
}
