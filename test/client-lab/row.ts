import type { ModelApi } from "../../core/action/model-api.ts";
import type { Task } from "./task.ts";

/** Where a client finds the gateway, and a folder for its files. */
export interface Place {
  readonly url: string;
  readonly key: string;
  /** The name to ask for a model by. */
  readonly model: string;
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
  readonly api: ModelApi | "Gemini" | undefined;
  /** The API of the provider that serves it, where that is another. */
  readonly provider?: ModelApi;
  readonly mcp: string;
  /** The hosts it asks for that are not this machine, whatever it is told. */
  readonly hosts?: readonly string[];
  /** Has the client do the task, and resolves with what it printed. */
  run(place: Place): Promise<string>;
}

/** The name of a model that the provider of the row serves. */
export function modelOfRow({ api, provider }: Pick<LabRow, "api" | "provider">): string {
  return `${provider ?? api}-model`;
}
