import type { AnswerReader, StreamStep } from "../../pipeline/stream-guard.ts";
import type { WireEvent } from "../../provider/wire/event.ts";
import type { StreamReader } from "../../provider/wire/stream-reader.ts";
import { refuseToolUse } from "./tool-passthrough.ts";

/** Throws TOOLS_DISABLED as soon as an answer of the messages API asks for a tool. */
export class ToolRefusal implements AnswerReader<WireEvent> {
  readonly #reader: StreamReader;

  constructor(reader: StreamReader) {
    this.#reader = reader;
  }

  read(event: WireEvent): StreamStep {
    const step = this.#reader.read(event);
    if (event.event === "content_block_start" || step.terminal) refuseToolUse(this.#reader.body());
    return step;
  }

  body(): ReturnType<StreamReader["body"]> {
    return this.#reader.body();
  }

  sizeOf(event: WireEvent): number {
    return this.#reader.sizeOf(event);
  }

  rewrite(event: WireEvent, texts: readonly string[]): WireEvent {
    return this.#reader.rewrite(event, texts);
  }

  isWhole(pointer: string): boolean {
    return this.#reader.isWhole(pointer);
  }
}
