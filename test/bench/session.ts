import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type ActionEnvelope, withOutput } from "../../core/action/envelope.ts";
import type { Evaluation } from "../../core/action/evaluation.ts";
import { makeEvaluation, newAction } from "../support/ledger-world.ts";
import { findIn, SessionWorld } from "../support/session-world.ts";

// Processor time that sessions cost an action, and the memory that they take. It prints and asserts nothing.
const rounds = 30_000;
const sessions = 100_000;
const kilobyte = "See https://docs.example/start and write it to /srv/notes/plan.md, please. "
  .repeat(14)
  .slice(0, 1_000);

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
const world = await SessionWorld.create({ maxActive: 10_000 });
try {
  measureActions();
  await measureSessions();
} finally {
  await world.remove();
}

function measureActions(): void {
  const plain = { query: "weather" };
  const long = { path: "/srv/notes/today.md", content: kilobyte };
  print("the session machinery, per action: shown to policy, counted, taken into the past and its head written");
  print(`  ${time("begins", plain, (n) => `fresh-${n}`)} in a session that begins`);
  print(`  ${time("goes on", plain, () => "goes on")} in a session with 32 past actions`);
  print(
    `  ${time(
      "risky",
      plain,
      () => "risky",
      (action) => findIn(action, { session_risk: 0.001 }),
    )} that adds risk`,
  );
  taintTenfold("tainted");
  print(`  ${time("tainted", plain, () => "tainted")} in one with ten taints`);
  print(
    `  ${time("long", long, () => "long")} in one with 32 past actions, and 1 kB of arguments with hosts and paths`,
  );
  print(`  ${time("model", long, () => "model", makeEvaluation, "model")} that is a model request of as much`);
}

/** Of actions that are made beforehand. */
function time(
  name: string,
  args: ActionEnvelope["arguments"],
  labelOf: (n: number) => string,
  judge: (action: ActionEnvelope) => Evaluation = makeEvaluation,
  protocol: ActionEnvelope["protocol"] = "mcp",
): string {
  const actions: Judged[] = Array.from({ length: rounds }, (_, n) => {
    const action = newAction({ arguments: args, protocol, tool: `${name}-${n % 5}` }, labelOf(n));
    return { action, judged: judge(action), output: { ...judge(action), phase: "output" } };
  });
  const warmUp = actions.splice(0, rounds / 3);
  for (const each of warmUp) take(each);
  const before = process.cpuUsage();
  for (const each of actions) take(each);
  const { user, system } = process.cpuUsage(before);
  return `${((user + system) / actions.length).toFixed(1).padStart(5)} µs`;
}

interface Judged {
  readonly action: ActionEnvelope;
  readonly judged: Evaluation;
  readonly output: Evaluation;
}

function take({ action, judged, output }: Judged): void {
  const visit = world.watch.begin(action);
  visit.applyVerdict({ action, evaluation: judged, review: null, isCommitted: false });
  world.killSwitch.check(action);
  visit.operations(true);
  visit.finish();
  void world.watch.recordTaints(action, output);
}

function taintTenfold(label: string): void {
  for (let n = 0; n < 10; n++) {
    const output = withOutput(newAction({}, label), "text");
    void world.watch.recordTaints(output, { ...findIn(output, { taints: [`word-${n}`] }), phase: "output" });
  }
}

/** A thousand at once, each with its decision durable. */
async function measureSessions(): Promise<void> {
  collect();
  const before = process.memoryUsage().rss;
  const started = performance.now();
  for (let first = 0; first < sessions; first += 1_000) {
    const some = Array.from({ length: 1_000 }, (_, n) => newAction({ tool: `tool-${first + n}` }, `many-${first + n}`));
    await Promise.all(some.map(act));
  }
  const seconds = (performance.now() - started) / 1_000;
  collect();
  const grown = (process.memoryUsage().rss - before) / 2 ** 20;
  print(
    `${sessions} sessions, one action each with a tool of its own, on record in ${seconds.toFixed(1)} s: ` +
      `${world.observed.watched} in memory, resident memory ${grown.toFixed(0)} MiB more`,
  );
  const listed = performance.now();
  const { items } = await world.control.sessionDirectory.list("acme", "risk", 50);
  print(`the ${items.length} with the highest risk of them in ${(performance.now() - listed).toFixed(0)} ms`);
}

async function act(action: ActionEnvelope): Promise<void> {
  await world.decide(action);
  await world.ledger.actions.recordOutcome(action, { status: "success", output: {} });
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
