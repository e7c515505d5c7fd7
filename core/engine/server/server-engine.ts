import type { CancelSignal } from "../../action/cancellation.ts";
import type { ActionEnvelope } from "../../action/envelope.ts";
import type { JsonObject } from "../../action/json.ts";
import type { Verdict } from "../../action/policy.ts";
import type { ServerEngineType } from "../../config/policy-schema.ts";
import { EngineError } from "../engine-fault.ts";
import type { Engine } from "../engine-policy.ts";
import type { PolicyServer } from "./policy-server.ts";

/** A question to a server. */
export interface ServerQuestion {
  /** Begins with `/`. */
  readonly path: string;
  readonly body: JsonObject;
}

/** The questions and answers of one kind of server. */
export interface ServerDialect {
  readonly type: ServerEngineType;
  /** Returns the question about an action, or the verdict where none is needed. Throws EngineError. */
  ask(action: ActionEnvelope): ServerQuestion | Verdict;
  /** Reads the body of an answer. Throws EngineError. */
  read(body: Uint8Array): Verdict;
}

/** Policies that another server evaluates. Each verdict has the digest of the answer that it was made of. */
export class ServerEngine implements Engine {
  readonly isRemote = true;
  readonly #dialect: ServerDialect;
  readonly #server: PolicyServer;

  constructor(dialect: ServerDialect, server: PolicyServer) {
    this.#dialect = dialect;
    this.#server = server;
  }

  get type(): ServerEngineType {
    return this.#dialect.type;
  }

  async judge(action: ActionEnvelope, cancel?: CancelSignal): Promise<Verdict> {
    const question = this.#dialect.ask(action);
    if ("decision" in question) return question;
    const { body, digest } = await this.#server.post(question.path, JSON.stringify(question.body), cancel);
    try {
      return { ...this.#dialect.read(body), answerDigest: digest };
    } catch (error) {
      if (error instanceof EngineError) throw new EngineError(error.reason, error.message, digest);
      throw error;
    }
  }
}
