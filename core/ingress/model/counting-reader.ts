import type { JsonObject } from "../../kernel/json.ts";
import type { TokenUsage } from "../../kernel/token-usage.ts";
import type { AnswerReader } from "../../pipeline/stream-guard.ts";
import type { WireEvent } from "../../provider/wire/event.ts";
import type { StreamReader } from "../../provider/wire/stream-reader.ts";
import type { StreamStep } from "../../provider/wire/stream-step.ts";
import { refuseToolUse } from "./tool-passthrough.ts";

/** The reader of a streamed answer: it keeps the provider's count, and refuses tools where they are not passed on. */
export class CountingReader implements AnswerReader<WireEvent> {
  readonly #reader: StreamReader;
  readonly #refusesTools: boolean;
  readonly #onUsage: (usage: TokenUsage) => void;
  #usage: TokenUsage | undefined;

  /** `onUsage` hears of each count that the provider gives. */
  constructor(reader: StreamReader, refusesTools: boolean, onUsage: (usage: TokenUsage) => void) {
    this.#reader = reader;
    this.#refusesTools = refusesTools;
    this.#onUsage = onUsage;
  }

  /** What the provider counted so far. */
  get usage(): TokenUsage | undefined {
    return this.#usage;
  }

  /** Throws TOOLS_DISABLED as soon as an answer of the messages API asks for a tool that may not be asked for. */
  read(event: WireEvent): StreamStep {
    const step = this.#reader.read(event);
    this.#usage = step.usage ?? this.#usage;
    if (step.usage !== undefined) this.#onUsage(step.usage);
    if (this.#refusesTools && (event.event === "content_block_start" || step.terminal)) refuseToolUse(this.body());
    return step;
  }

  body(): JsonObject {
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
