import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { nodeFlags } from "./node-flags.ts";
import { awaitReady, killWithParent } from "./ready-line.ts";

const program = fileURLToPath(new URL("../fixture/gateway-group.js", import.meta.url));
const startMs = 60_000;

/** Where a gateway of a group listens. */
export interface GroupedGateway {
  readonly url: string;
  readonly adminUrl: string;
}

/**
 * Gateways that one process serves, each from its own folder: loading the program costs ten times what starting one more gateway
 * does. They are killed together.
 */
export class GatewayGroup {
  readonly #child: ChildProcess;
  readonly #closed: Promise<unknown>;
  readonly #never = new Promise<number>(() => undefined);
  isKilled = false;

  /** `env`: added to this process's environment. */
  constructor(env: Readonly<Record<string, string>>) {
    const stdio = ["ignore", "pipe", "pipe", "ipc"] as const;
    const options = { env: { ...process.env, ...env }, stdio: [...stdio], detached: true };
    this.#child = spawn(process.execPath, [...nodeFlags, program], options);
    this.#child.setMaxListeners(0);
    this.#closed = once(this.#child, "close");
    killWithParent(this.#child);
  }

  /** Starts one more, by the path of its configuration. Throws with the end of the log where it does not come to serve. */
  async start(config: string): Promise<GroupedGateway> {
    this.#child.send(config);
    // The process is this group's to end, not that of one of its gateways.
    const ready = await awaitReady(this.#child, { event: "ready" }, startMs, this.#never);
    const url = (field: string): string => `http://127.0.0.1:${ready.port(field)}`;
    return { url: url("gateway_port"), adminUrl: url("admin_port") };
  }

  /** Kills the process, whatever its gateways are at. */
  async kill9(): Promise<void> {
    this.isKilled = true;
    this.#child.kill("SIGKILL");
    await this.#closed;
  }
}
