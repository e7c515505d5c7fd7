import { GatewayError } from "../action/error.ts";
import type { Evaluation } from "../action/evaluation.ts";
import type { Json, JsonObject } from "../action/json.ts";
import { buildFromPointers, valueAt } from "../action/json-pointer.ts";
import type { Redaction } from "../action/policy.ts";
import type { StreamStep } from "../provider/wire/stream-step.ts";
import type { Answer, AnswerStream, Judge, Stopped } from "./dispatch.ts";
import { type ChannelSpan, StreamChannel } from "./stream-channel.ts";

/** Reads an answer event by event. */
export interface AnswerReader<Event> {
  read(event: Event): StreamStep;
  /** Bytes an event takes while it waits. */
  sizeOf(event: Event): number;
  /** The answer so far, as one that was not streamed. */
  body(): JsonObject;
  /** The same event with other texts in the place of its own: one for each of its pieces, in their order. */
  rewrite(event: Event, texts: readonly string[]): Event;
  /**
   * Returns true for an event that repeats a text which `rewrite` changed in an earlier one, or spells a text once more in
   * another form: it is rewritten, too, where policy reads answers.
   */
  isStale(event: Event): boolean;
  /** Returns true where a text is of use to the client only once it is whole, as the arguments of a tool call are. */
  isWhole(pointer: string): boolean;
}

interface StreamGuardOptions<Event> {
  readonly reader: AnswerReader<Event>;
  /** Judges an answer, or a part of one. */
  readonly judge: (output: Json) => Promise<Evaluation>;
  /** Code units of each text that wait for what follows them; 0 where no policy reads answers. */
  readonly holdback: number;
  /** Bytes that may wait in all. */
  readonly maxHeldBytes: number;
  /** True where tool calls are judged by their facts: each waits for the end of the answer, also where no text does. */
  readonly holdsCalls: boolean;
}

/** Events that may go to the client, or the evaluation that forbids it. */
type Release<Event> =
  | { readonly kind: "released"; readonly events: readonly Event[] }
  | { readonly kind: "withheld"; readonly evaluation: Evaluation };

interface Held<Event> {
  readonly event: Event;
  readonly bytes: number;
  readonly pieces: readonly HeldPiece[];
  readonly unknown: readonly HeldPiece[];
  /** True where it waits for the end of the answer. */
  readonly isLast: boolean;
}

interface HeldPiece extends ChannelSpan {
  readonly channel: StreamChannel;
  /** The pointer of a channel that is forgotten once it was released. */
  readonly only?: string;
}

/** The place where policies see members that the gateway does not know. */
const unknownRoot = "/unknown_members";
const outputRoot = "/output";
/** Texts of parts, which readers join with the next part's. */
const partText = /\/\d+\/(?:text|thinking|refusal)$/;

/**
 * Holds back the end of a streamed answer: no text is released that policy has not seen together with the `holdback`
 * code units that follow it. So what is at most that long, and is found when it is whole, never leaves in part. Events
 * leave in their order, byte for byte where nothing in them is replaced.
 */
export class StreamGuard<Event> {
  readonly #options: StreamGuardOptions<Event>;
  readonly #channels = new Map<string, StreamChannel>();
  /** Texts of parts that ended, with the code units of the parts that followed. */
  readonly #endedParts = new Map<StreamChannel, number>();
  #held: Held<Event>[] = [];
  #heldBytes = 0;
  #ended = false;
  #error: Json | undefined;

  constructor(options: StreamGuardOptions<Event>) {
    this.#options = options;
  }

  /** True where the answer is whole: `finish` is next. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Takes in the next event. Throws PROVIDER_INVALID where more would have to wait than may. */
  push(event: Event): void {
    const { reader, maxHeldBytes, holdsCalls } = this.#options;
    const { pieces, unknown, finished, terminal, error, call } = reader.read(event);
    const bytes = reader.sizeOf(event);
    this.#heldBytes += bytes;
    if (this.#heldBytes > maxHeldBytes) {
      throw new GatewayError("PROVIDER_INVALID", `expected at most ${maxHeldBytes} bytes to wait for their judgement`);
    }
    this.#held.push({
      event,
      bytes,
      pieces: pieces.map(({ pointer, text }) => this.#append(pointer, text)),
      unknown: unknown.map(({ pointer, text, isComplete }) =>
        isComplete === true
          ? this.#appendComplete(unknownRoot + pointer, text)
          : this.#append(unknownRoot + pointer, text),
      ),
      isLast: holdsCalls && call === true,
    });
    this.#followParts(pieces, call === true);
    for (const pointer of finished) this.#finish(pointer);
    this.#ended ||= terminal;
    this.#error ??= error;
  }

  /** Releases what may leave before the answer is whole, after judging it where enough has come. */
  async release(): Promise<Release<Event>> {
    const { holdback, judge } = this.#options;
    if (holdback === 0) for (const channel of this.#channels.values()) channel.clear([]);
    else {
      const isMeant = this.#dueTexts();
      if (isMeant !== null) {
        const evaluation = await judge(this.#texts(isMeant));
        if (evaluation.decision !== "allow") return { kind: "withheld", evaluation };
        this.#clear(evaluation.redactions, (channel, redactions) => channel.clear(redactions), isMeant);
      }
    }
    return { kind: "released", events: this.#take(({ isLast }) => isLast) };
  }

  /**
   * The texts to judge now; null where too little has come. Values of the provider are judged alone: a policy that looks for the
   * text of an answer is not asked before there is one. What is of use only once it is whole is judged then.
   */
  #dueTexts(): ((pointer: string) => boolean) | null {
    const { reader } = this.#options;
    const due = [...this.#channels].filter(([, { isDue }]) => isDue);
    if (due.length === 0) return null;
    if (due.every(([pointer]) => pointer.startsWith(unknownRoot))) return (pointer) => pointer.startsWith(unknownRoot);
    return (pointer) => !reader.isWhole(pointer);
  }

  /** True where the upstream itself ended the answer with an error. */
  get failed(): boolean {
    return this.#error !== undefined;
  }

  /** The whole answer as policies judge it. */
  whole(): JsonObject {
    const error = this.#error === undefined ? {} : { error: this.#error };
    return { ...this.#options.reader.body(), ...error, ...this.#texts((pointer) => pointer.startsWith(unknownRoot)) };
  }

  /** Releases the rest of a judged answer; `redacted` is the answer as it may be seen. */
  finish(redactions: readonly Redaction[], redacted: Json): readonly Event[] {
    this.#clear(redactions, (channel, own) => channel.clearWhole(own));
    for (const [pointer, channel] of this.#channels) {
      const inside = `${outputRoot}${pointer}/`;
      if (!redactions.some((redaction) => redaction.pointer.startsWith(inside))) continue;
      channel.replace(JSON.stringify(valueAt(redacted, pointer)));
    }
    return this.#take(() => false);
  }

  #append(pointer: string, text: string): HeldPiece {
    let channel = this.#channels.get(pointer);
    if (channel === undefined) {
      const { holdback, reader } = this.#options;
      channel = new StreamChannel(holdback > 0 && reader.isWhole(pointer) ? Number.POSITIVE_INFINITY : holdback);
      this.#channels.set(pointer, channel);
    }
    return { ...channel.append(text), channel };
  }

  /** A part's text has ended; its end still waits for as much of the parts after it as is held back. */
  #finish(pointer: string): void {
    const channel = this.#channels.get(pointer);
    if (channel === undefined || this.#options.reader.isWhole(pointer)) return;
    if (!partText.test(pointer)) channel.finish();
    else if (!this.#endedParts.has(channel)) this.#endedParts.set(channel, 0);
  }

  /** Counts what follows the parts that ended. Nobody reads across a tool call. */
  #followParts(pieces: StreamStep["pieces"], isCall: boolean): void {
    if (this.#endedParts.size === 0) return;
    const units = pieces.reduce((sum, { pointer, text }) => sum + (partText.test(pointer) ? text.length : 0), 0);
    for (const [channel, followed] of this.#endedParts) {
      this.#endedParts.set(channel, followed + units);
      if (isCall || followed + units >= this.#options.holdback) channel.finish();
    }
  }

  /** Adds a text to which nothing will be added: it is judged at once. */
  #appendComplete(pointer: string, text: string): HeldPiece {
    const piece = this.#append(pointer, text);
    piece.channel.finish();
    return { ...piece, only: pointer };
  }

  /** The texts under way of these pointers, where they stand in an answer. */
  #texts(isMeant: (pointer: string) => boolean): JsonObject {
    const texts = [...this.#channels].filter(([pointer]) => isMeant(pointer));
    return buildFromPointers(texts.map(([pointer, { window }]) => [pointer, window]));
  }

  /** Throws POLICY_BLOCKED for a redaction in what cannot be changed: then it may not leave. */
  #clear(
    redactions: readonly Redaction[],
    clear: (channel: StreamChannel, redactions: readonly Redaction[]) => void,
    isMeant: (pointer: string) => boolean = () => true,
  ): void {
    if (redactions.some(({ pointer }) => pointer.startsWith(outputRoot + unknownRoot))) {
      throw new GatewayError("POLICY_BLOCKED", "policy replaces a text in a member that the gateway does not know");
    }
    for (const [pointer, channel] of this.#channels) {
      if (!isMeant(pointer)) continue;
      const own =
        redactions.length === 0 ? redactions : redactions.filter((each) => each.pointer === outputRoot + pointer);
      clear(channel, own);
    }
  }

  /** The events whose texts are all cleared, in their order, up to the first that `waits` or of which one text is not. */
  #take(waits: (held: Held<Event>) => boolean): readonly Event[] {
    const waiting = this.#held.findIndex(
      (held) => waits(held) || [...held.pieces, ...held.unknown].some(({ to, channel }) => to > channel.cleared),
    );
    if (waiting === 0) return [];
    const end = waiting === -1 ? this.#held.length : waiting;
    const taken = this.#held.slice(0, end);
    this.#held = this.#held.slice(end);
    const events = taken.map((held) => this.#render(held));
    for (const { bytes, pieces, unknown } of taken) {
      this.#heldBytes -= bytes;
      for (const { to, channel, only } of [...pieces, ...unknown]) {
        channel.release(to);
        if (only !== undefined) this.#channels.delete(only);
      }
    }
    return events;
  }

  #render({ event, pieces }: Held<Event>): Event {
    const texts = pieces.map((piece) => piece.channel.render(piece));
    const changed = pieces.some((piece, index) => piece.channel.original(piece) !== texts[index]);
    const { reader, holdback } = this.#options;
    return changed || (holdback > 0 && reader.isStale(event)) ? reader.rewrite(event, texts) : event;
  }
}

interface StreamParts<Event, Reply> {
  readonly reader: AnswerReader<Event>;
  /** In their order; given up early where the answer goes no further. */
  readonly events: AsyncIterable<Event>;
  /** Resolves when the client can take more. */
  readonly deliver: (events: readonly Event[]) => Promise<void>;
  readonly holdback: number;
  readonly maxHeldBytes: number;
  readonly holdsCalls: boolean;
  /** The reply of the action once all events are delivered. */
  readonly reply: Reply;
}

/** An answer as its events come, each let go once policy has seen it and what follows it. */
export function streamAnswer<Event, Reply>(parts: StreamParts<Event, Reply>): AnswerStream<Reply> {
  return { flow: (judge) => flow(parts, judge) };
}

async function flow<Event, Reply>(
  { reader, events, deliver, holdback, maxHeldBytes, holdsCalls, reply }: StreamParts<Event, Reply>,
  judge: Judge,
): Promise<Answer<Reply> | Stopped> {
  const guard = new StreamGuard({ reader, judge, holdback, maxHeldBytes, holdsCalls });
  for await (const event of events) {
    guard.push(event);
    // After an error, a mark of the end may follow.
    if (guard.failed) continue;
    if (guard.ended) break;
    const release = await guard.release();
    if (release.kind === "withheld") return { stopped: release.evaluation };
    if (release.events.length > 0) await deliver(release.events);
  }
  if (!guard.ended) throw new GatewayError("PROVIDER_INVALID", "the answer ended before it was whole");
  return {
    status: guard.failed ? "error" : "success",
    output: guard.whole(),
    makeReply: async (output, redactions) => {
      await deliver(guard.finish(redactions, output));
      return reply;
    },
  };
}
