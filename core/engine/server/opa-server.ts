import type { ActionEnvelope } from "../../action/envelope.ts";
import { isJsonObject } from "../../action/json.ts";
import type { Verdict } from "../../action/policy.ts";
import { EngineError } from "../engine-fault.ts";
import { inputOf } from "../input.ts";
import type { EngineSource } from "../manifest.ts";
import { parseEngineAnswer, readDecision } from "../rego/rego-answer.ts";
import type { ServerDialect, ServerQuestion } from "./server-engine.ts";

/** OPA's Data API: `POST /v1/data/<entrypoint>` with `{"input": …}`, answered by `{"result": …}`. */
export class OpaServer implements ServerDialect {
  readonly type = "opa-server";
  readonly #name: string;
  readonly #entrypoint: string;

  constructor({ ref, entrypoint }: EngineSource) {
    this.#name = ref.name;
    this.#entrypoint = entrypoint;
  }

  ask(action: ActionEnvelope): ServerQuestion {
    return { path: `/v1/data/${this.#entrypoint}`, body: { input: inputOf(action) } };
  }

  /** Members beside `result`, such as `decision_id`, are not read. */
  read(body: Uint8Array): Verdict {
    const answer = parseEngineAnswer(body);
    if (!isJsonObject(answer)) throw new EngineError("answer", "expected an object with `result` from the server");
    // A server without the policy answers like one whose rule is undefined.
    if (!Object.hasOwn(answer, "result") || answer.result === undefined)
      throw new EngineError(
        "answer",
        `\`${this.#entrypoint}\` is undefined on the server: expected a rule with a value`,
      );
    return readDecision(answer.result, this.#name);
  }
}
