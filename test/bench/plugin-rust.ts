import { execFile } from "node:child_process";
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { phases } from "../../core/action/envelope.ts";
import { compilePlugin } from "../../core/plugin/plugin.ts";
import { makeAction } from "../support/action.ts";
import { openPool, portsOfOneThread } from "../support/plugin-port.ts";
import { quantile } from "./quantile.ts";

// Microseconds that the Rust plugin of `plugin new` takes for an envelope of 1 KB, as a policy in the thread that serves:
// with the stack of a page that the gateway's compiler call gives it, and with the megabyte that rustc gives by itself in a
// memory that begins with 1.3 MiB. They take turns. It prints and asserts nothing.
const rounds = 80;
const callsARound = 500;
const settings = { text: "BEGIN PRIVATE KEY" };
const options = {
  ...portsOfOneThread,
  ref: { kind: "plugin", name: "text-guard", version: "1.0.0", digest: "sha256:00", signer: null },
  mode: "enforce",
  ...{ phases, settings, fuel: 5_000_000, memoryPages: 32 },
} as const;

const pool = openPool(1);
const ways = await Promise.all(
  (
    [
      ["a stack of 64 KiB", ["-C", "link-arg=-zstack-size=65536"]],
      ["a memory of 1.3 MiB", ["-C", "link-arg=--initial-memory=1376256"]],
    ] as const
  ).map(async ([name, stack]) => {
    const module = await build(stack);
    return { name, policy: await compilePlugin({ ...options, pool, module }), times: [] as number[] };
  }),
);
for (let round = -rounds / 4; round < rounds; round++) {
  for (const { policy, times } of ways) {
    const actions = Array.from({ length: callsARound }, sample);
    for (const action of actions) {
      const started = performance.now();
      const verdict = policy.evaluate(action);
      const took = (performance.now() - started) * 1_000;
      if (verdict instanceof Promise) throw new TypeError("expected an answer in the thread that serves");
      if (round >= 0) times.push(took);
    }
  }
}
process.stdout.write("\n| Rust, as a policy | p50 µs | p99 µs |\n|---|---|---|\n");
for (const { name, times } of ways) {
  process.stdout.write(`| ${name} | ${quantile(times, 0.5).toFixed(1)} | ${quantile(times, 0.99).toFixed(1)} |\n`);
}
await pool.close();

/** Builds the template with the compiler of Debian's package `rustc`, as `plugin build` does but for the stack. */
async function build(stack: readonly string[]): Promise<Uint8Array> {
  const folder = await mkdtemp(join(tmpdir(), "bench-rust-"));
  try {
    await mkdir(join(folder, "src"));
    const template = await readFile("sdk/template/rust/plugin.rs", "utf8");
    await writeFile(join(folder, "src/plugin.rs"), template.replaceAll("{{name}}", options.ref.name));
    await copyFile("sdk/rust/gateway_plugin.rs", join(folder, "src/gateway_plugin.rs"));
    const flags = "--edition 2021 --crate-type cdylib --crate-name plugin --target wasm32-unknown-unknown";
    const codegen = ["opt-level=s", "lto=fat", "codegen-units=1", "panic=abort", "strip=symbols"];
    const args = [...flags.split(" "), ...codegen.flatMap((each) => ["-C", each]), ...stack];
    await promisify(execFile)("/usr/bin/rustc", [...args, "src/plugin.rs", "-o", "plugin.wasm"], { cwd: folder });
    return await readFile(join(folder, "plugin.wasm"));
  } finally {
    await rm(folder, { recursive: true });
  }
}

function sample(): ReturnType<typeof makeAction> {
  const comment = "lorem ipsum dolor sit amet ".repeat(18);
  return makeAction({
    tool: "write_file",
    arguments: { path: "/etc/hosts", options: { overwrite: true, mode: 512, comment } },
  });
}
