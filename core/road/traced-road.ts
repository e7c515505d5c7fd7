import type { AuthorizedAction } from "../action/authorized-action.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import { noSpan, type Span } from "../action/trace.ts";
import type { Answer, Dispatch, Passage, Road, RoadParts, Stopped, StreamedAnswer } from "./run.ts";

/** A dispatch that is told the span it is inside of. */
type TracedDispatch<Reply> = (permission: AuthorizedAction, step: Span) => ReturnType<Dispatch<Reply>>;

/**
 * Takes an action down the road, each step of which becomes a span below `span`, which learns how it went. Resolves and
 * rejects as the road does.
 */
export async function travelTraced<Reply>(
  road: Road,
  span: Span,
  action: ActionEnvelope,
  dispatch: TracedDispatch<Reply>,
): Promise<Passage<Reply>> {
  if (span === noSpan) return road.travel(action, (permission) => dispatch(permission, noSpan));
  const traced = road.over((parts) => traceParts(parts, span));
  const passage = await traced.travel(action, (permission) => dispatchIn(span.begin("dispatch"), permission, dispatch));
  span.tell({ passed: passage.kind });
  return passage;
}

/** The same parts, whose work becomes spans below `span`. */
function traceParts(parts: RoadParts, span: Span): RoadParts {
  const { chain, log, observer } = parts;
  return {
    ...parts,
    chain: {
      readsOutput: (protocol) => chain.readsOutput(protocol),
      evaluate: (action) => {
        if (action.phase === "input") span.tell({ action });
        return inSpan(span.begin(action.phase === "output" ? "judge_output" : "evaluate"), async (step) => {
          const evaluation = await chain.evaluate(action);
          step.tell({ evaluation });
          span.tell({ evaluation });
          return evaluation;
        });
      },
    },
    log: {
      recordDecision: (...said) => inSpan(span.begin("record_decision"), () => log.recordDecision(...said)),
      recordOutcome: (...said) => inSpan(span.begin("record_outcome"), () => log.recordOutcome(...said)),
    },
    observer: {
      decided: (protocol, phase, decision, durationUs) =>
        observer.decided(protocol, phase, decision, durationUs, span.context),
      settled: (...said) => observer.settled(...said),
      redacted: (...said) => observer.redacted(...said),
    },
  };
}

/** INVARIANT: `work` begins in the turn in which this is called: what the road checks last, nothing comes after. */
export async function inSpan<T>(span: Span, work: (span: Span) => Promise<T>): Promise<T> {
  try {
    return await work(span);
  } catch (cause) {
    throw tellFault(span, cause);
  } finally {
    span.end();
  }
}

function tellFault(span: Span, cause: unknown): unknown {
  span.tell({ error: GatewayError.from(cause).code });
  return cause;
}

/** The step of an answer that comes event by event ends with its last event. */
async function dispatchIn<Reply>(
  step: Span,
  permission: AuthorizedAction,
  dispatch: TracedDispatch<Reply>,
): Promise<Answer<Reply> | StreamedAnswer<Reply>> {
  let flows = false;
  try {
    const answer = await dispatch(permission, step);
    flows = "flow" in answer;
    if ("flow" in answer)
      return { flow: (judge) => inSpan(step, async () => tellStatus(step, await answer.flow(judge))) };
    return tellStatus(step, answer);
  } catch (cause) {
    throw tellFault(step, cause);
  } finally {
    if (!flows) step.end();
  }
}

function tellStatus<Reply, End extends Answer<Reply> | Stopped>(step: Span, end: End): End {
  if ("status" in end && end.status === "error") step.tell({ error: "tool_error" });
  return end;
}
