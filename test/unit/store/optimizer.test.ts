import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect } from "chai";

const program = `
const { pauseOptimizing, resumeOptimizing, whileOptimizing } = await import(process.argv[1]);
const heat = (name) => {
  const sum = Function("count", "return function " + name + "(count) { let sum = 0; for (let at = 0; at < count; at++) sum += at % 7; return sum; }")();
  for (let round = 0; round < 200; round++) sum(20_000);
};
const rest = () => new Promise((resolve) => setTimeout(resolve, 50));
pauseOptimizing(Number(process.argv[2]));
heat("paused"); await rest();
await whileOptimizing(async () => { heat("amid"); await rest(); });
heat("pausedAgain"); await rest();
resumeOptimizing();
heat("resumed"); await rest();
`;

describe("V8's optimizing compiler in a process", () => {
  /** The functions of the program of which V8 made optimized code. */
  async function optimizedIn(pauseMs: number): Promise<readonly string[]> {
    const module = new URL("../../../core/store/optimizer.js", import.meta.url).href;
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ["--trace-opt", "--input-type=module", "-e", program, module, String(pauseMs)],
      { maxBuffer: 16_777_216 },
    );
    const names = [...stdout.matchAll(/\[completed optimizing \S+ <JSFunction (paused|amid|pausedAgain|resumed)\b/g)];
    return [...new Set(names.map(([, name = ""]) => name))];
  }

  it("rests during a pause, but not during work that goes through many bytes", async () => {
    expect(await optimizedIn(60_000)).to.deep.equal(["amid", "resumed"]);
  });

  it("goes on by itself once a pause has lasted long enough", async () => {
    expect(await optimizedIn(1)).to.include.members(["amid", "pausedAgain", "resumed"]);
  });
});
