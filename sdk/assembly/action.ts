import { Value } from "./value";

/** The action to judge: what an agent attempts, or, in phase `output`, what came of it. */
export class Action {
  /** `value` is the action as a whole. */
  constructor(public value: Value) {}

  /** What stands at a JSON Pointer in the action: `get("/session/id")`. */
  get(pointer: string): Value {
    return this.value.get(pointer);
  }

  /** Whether a call is about to be made. */
  get isInput(): bool {
    return this.get("/phase").is("input");
  }

  /** Whether there is an answer, in `output`. */
  get isOutput(): bool {
    return this.get("/phase").is("output");
  }

  /** Whether it is asked if a tool may be seen. */
  get isList(): bool {
    return this.get("/phase").is("list");
  }

  /** `list`, `input` or `output`. */
  get phase(): string {
    return this.get("/phase").text();
  }

  /** `mcp`, `model`, … */
  get protocol(): string {
    return this.get("/protocol").text();
  }

  get tool(): string {
    return this.get("/tool").text();
  }

  /** The upstream's name. */
  get target(): string {
    return this.get("/target").text();
  }

  /** `read`, `write`, `delete`, `execute`, `deploy`, `network`, `generate` or `approve`. */
  get capability(): string {
    return this.get("/capability").text();
  }

  get tenant(): string {
    return this.get("/tenant").text();
  }

  /** The role of whoever attempts it. */
  get role(): string {
    return this.get("/principal/role").text();
  }

  get arguments(): Value {
    return this.get("/arguments");
  }

  /** What continues an interrupted request; mostly none. */
  get continuation(): Value {
    return this.get("/continuation");
  }

  /** The answer; none but in phase `output`. */
  get output(): Value {
    return this.get("/output");
  }
}
