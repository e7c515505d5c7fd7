import type { JsonObject } from "../../core/action/json.ts";
import type { LabApi } from "./stand-in.ts";
import type { Task } from "./task.ts";

/** Where a client finds the gateway and, where it cannot ask it for a model, the provider; and a folder for its files. */
export interface Place {
  readonly url: string;
  readonly key: string;
  readonly providerUrl: string;
  readonly home: string;
  readonly env: Readonly<Record<string, string>>;
  readonly task: Task;
}

/** One client in one of the ways that it can be used. */
export interface LabRow {
  readonly client: string;
  /** Whose version the page names. */
  readonly packageName: string;
  /** The model API it asks in; undefined where it asks no model. */
  readonly api: LabApi | undefined;
  readonly mcp: string;
  /** The hosts it asks for that are not this machine, whatever it is told. */
  readonly hosts?: readonly string[];
  /** Has the client do the task, and resolves with what it printed. */
  run(place: Place): Promise<string>;
}

/** What `JSON.stringify` makes of it, for files and variables that clients are told by. */
export function jsonText(value: JsonObject): string {
  return JSON.stringify(value);
}
