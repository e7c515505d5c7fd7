import { expect } from "chai";
import type { ModelApi } from "../../../core/action/model-api.ts";
import type { Told } from "./ask.ts";

/** What an error says in any API. */
export interface ToldError {
  readonly type: string;
  readonly message: string;
  /** Ours; the messages API has none of its own. */
  readonly code?: string | null;
}

type Members = Readonly<Record<string, unknown>>;

/**
 * The error that ended an answer, whole or as the last event of a stream. Fails unless it is in the shape that the API
 * documents, with the id of the request in the place where its clients look for it.
 */
export function errorOf(api: ModelApi, told: Told): ToldError {
  const isStream = told.headers.get("content-type")?.startsWith("text/event-stream") === true;
  const body = JSON.parse(isStream ? lastEvent(api, told.text) : told.text) as Members;
  const id = told.headers.get("request-id");
  expect(id).to.match(/^[0-9a-f-]{36}$/);
  expect(told.headers.get("x-request-id")).to.equal(id);
  return errorIn(api, body, id);
}

/** The error in a body of this API. */
export function errorIn(api: ModelApi, body: Members, requestId: string | null | undefined): ToldError {
  const error = body.error as Members;
  if (api === "messages") {
    expect(body).to.have.all.keys("type", "error", "request_id");
    expect(body).to.include({ type: "error", request_id: requestId });
    expect(error).to.include.all.keys("type", "message");
  } else {
    if (api === "responses" && body.type === "error") {
      expect(body).to.have.all.keys("type", "sequence_number", "code", "message", "param", "error");
    } else expect(body).to.have.all.keys("error");
    expect(error).to.include.all.keys("type", "message", "code", "param");
  }
  return error as unknown as ToldError;
}

function lastEvent(api: ModelApi, text: string): string {
  const name = api === "chat" ? "" : "event: error\n";
  const after = api === "responses" ? "event: response.failed\\ndata: .*\\n\\n" : "";
  const event = new RegExp(`(?:^|\\n\\n)${name}data: (.*)\\n\\n${after}$`).exec(text);
  if (event?.[1] === undefined) throw new Error(`expected a stream that ends in an error, got \`${text.slice(-300)}\``);
  return event[1];
}
