import { once } from "node:events";
import { WebSocket } from "ws";

/** A function of a script, as V8's precise coverage counts its calls. */
export interface CountedFunction {
  readonly functionName: string;
  readonly ranges: readonly [{ readonly startOffset: number; readonly endOffset: number; readonly count: number }];
}

export interface CoveredScript {
  readonly scriptId: string;
  readonly url: string;
  readonly functions: readonly CountedFunction[];
}

/** A place in a script where V8 can stop; lines and columns from 0. */
export interface ScriptPlace {
  readonly scriptId: string;
  readonly lineNumber: number;
  readonly columnNumber: number;
}

interface Reply {
  readonly id?: number;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

const unoptimized = 'import v8 from "node:v8"; v8.setFlagsFromString("--no-opt");';

/**
 * Makes Node listen for an inspector, at a port that the system chooses, and optimize nothing: V8 does not count the
 * calls of a function that it put into another.
 */
export const inspectedEnv: Readonly<Record<string, string>> = {
  NODE_OPTIONS: `--inspect=127.0.0.1:0 --import=data:text/javascript,${encodeURIComponent(unoptimized)}`,
};

/** The inspector of another process, by the protocol that V8 documents. It sees the main thread alone. */
export class InspectedProcess {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, (reply: Reply) => void>();
  #sent = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (data) => this.#take(JSON.parse(String(data)) as Reply));
  }

  /** Connects to the process that wrote `stderr`, started with `inspectedEnv`. */
  static async connect(stderr: string): Promise<InspectedProcess> {
    const url = /^Debugger listening on (ws:\S+)$/m.exec(stderr)?.[1];
    if (url === undefined) throw new Error(`expected the address of an inspector on stderr, got ${stderr}`);
    const socket = new WebSocket(url, { perMessageDeflate: false });
    await once(socket, "open");
    return new InspectedProcess(socket);
  }

  async startCoverage(): Promise<void> {
    await this.#ask("Profiler.enable", {});
    await this.#ask("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  }

  /** Takes the counts since it was last asked for them, and sets them to zero. */
  async takeCoverage(): Promise<readonly CoveredScript[]> {
    const { result } = await this.#ask<{ result: CoveredScript[] }>("Profiler.takePreciseCoverage", {});
    return result;
  }

  async stopCoverage(): Promise<void> {
    await this.#ask("Profiler.stopPreciseCoverage", {});
    await this.#ask("Debugger.enable", {});
  }

  /** The places to stop at from `start` on and before `end`, in their order. Only after `stopCoverage`. */
  async findStops(start: ScriptPlace, end: ScriptPlace): Promise<readonly ScriptPlace[]> {
    const asked = { start, end, restrictToFunction: false };
    const { locations } = await this.#ask<{ locations: ScriptPlace[] }>("Debugger.getPossibleBreakpoints", asked);
    return locations;
  }

  /** Evaluates `condition` whenever `place` is reached, and goes on where it is false. */
  async setBreakpoint(location: ScriptPlace, condition: string): Promise<void> {
    await this.#ask("Debugger.setBreakpoint", { location, condition });
  }

  /** The value of an expression that JSON can hold. */
  async evaluate(expression: string): Promise<unknown> {
    const asked = { expression, returnByValue: true };
    return (await this.#ask<{ result: { value?: unknown } }>("Runtime.evaluate", asked)).result.value;
  }

  close(): void {
    this.#socket.terminate();
  }

  #ask<Result>(method: string, params: object): Promise<Result> {
    const id = ++this.#sent;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, ({ result, error }) => {
        if (error === undefined) resolve(result as Result);
        else reject(new Error(`${method}: ${error.message}`));
      });
      this.#socket.send(JSON.stringify({ id, method, params }));
    });
  }

  #take(reply: Reply): void {
    if (reply.id === undefined) return;
    this.#waiting.get(reply.id)?.(reply);
    this.#waiting.delete(reply.id);
  }
}
