import { Value } from "./value";

/** The action to judge: the attempt, or, in phase `output`, its outcome. */
export class Action {
  /** `value` is the action as a whole. */
  constructor(public value: Value) {}

  /** The value at a JSON Pointer in the action: `get("/session/id")`. */
  get(pointer: string): Value {
    return this.value.get(pointer);
  }

  /** True in phase `input`: the call has not been made. */
  get isInput(): bool {
    return this.get("/phase").is("input");
  }

  /** True in phase `output`: `output` holds the answer. */
  get isOutput(): bool {
    return this.get("/phase").is("output");
  }

  /** True in phase `list`: may the tool be listed. */
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

  /** The role of the principal. */
  get role(): string {
    return this.get("/principal/role").text();
  }

  get arguments(): Value {
    return this.get("/arguments");
  }

  /** The continuation of an interrupted request; usually absent. */
  get continuation(): Value {
    return this.get("/continuation");
  }

  /** The answer; none but in phase `output`. */
  get output(): Value {
    return this.get("/output");
  }
}
