import { GatewayError } from "../kernel/error.ts";
import type { Answer, Judge, Stopped, StreamedAnswer } from "./answer.ts";
import { type AnswerReader, StreamGuard } from "./stream-guard.ts";

export interface StreamParts<Event, Reply> {
  readonly reader: AnswerReader<Event>;
  /** In their order; given up early where the answer goes no further. */
  readonly events: AsyncIterable<Event>;
  /** Resolves when the client can take more. */
  readonly deliver: (events: readonly Event[]) => Promise<void>;
  readonly holdback: number;
  readonly mostHeldBytes: number;
  /** What the road ends in once all is delivered. */
  readonly reply: Reply;
}

/** An answer as its events come, each let go once policy has seen it and what follows it. */
export function streamAnswer<Event, Reply>(parts: StreamParts<Event, Reply>): StreamedAnswer<Reply> {
  return { flow: (judge) => flow(parts, judge) };
}

async function flow<Event, Reply>(
  { reader, events, deliver, holdback, mostHeldBytes, reply }: StreamParts<Event, Reply>,
  judge: Judge,
): Promise<Answer<Reply> | Stopped> {
  const guard = new StreamGuard({ reader, judge, holdback, mostHeldBytes });
  for await (const event of events) {
    guard.push(event);
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
