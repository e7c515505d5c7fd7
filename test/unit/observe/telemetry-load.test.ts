import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect } from "chai";

/** The packages of OpenTelemetry's that a process has loaded once it has imported a file of this build. */
async function loadedBy(file: string): Promise<readonly string[]> {
  const url = new URL(`../../../core/${file}`, import.meta.url).href;
  const program = `
    import { createRequire } from "node:module";
    await import(${JSON.stringify(url)});
    const paths = Object.keys(createRequire(${JSON.stringify(import.meta.url)}).cache);
    const names = paths.map((path) => /@opentelemetry\\/([a-z-]+)/.exec(path)?.[1]).filter((name) => name !== undefined);
    process.stdout.write(JSON.stringify([...new Set(names)].sort()));
    process.exit(0);
  `;
  const cwd = fileURLToPath(new URL("../../../..", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program], { cwd });
  return JSON.parse(stdout) as readonly string[];
}

describe("OpenTelemetry's packages", () => {
  it("are not loaded with the gateway, but for the one that prom-client brings", async () => {
    expect(await loadedBy("compose/gateway.js")).to.deep.equal(["api"]);
  });

  it("are loaded with what tells a collector", async () => {
    expect(await loadedBy("observe/otlp/telemetry.js")).to.include.members(["otlp-transformer", "sdk-trace"]);
  });
});
