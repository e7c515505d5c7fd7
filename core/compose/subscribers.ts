import type { ActionEnvelope } from "../action/envelope.ts";
import type { Evaluation } from "../action/evaluation.ts";
import type { Subscriber } from "../action/subscriber.ts";
import { liveSubscriber } from "../observe/live-decision.ts";
import type { LiveFeed } from "../observe/live-feed.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { RecentActions } from "../observe/recent-action.ts";

/** The subscribers of the road: metrics, live feed, results of shadow rules, and the recent decisions to explain. */
export function subscribersOf(metrics: Metrics, live: LiveFeed, recent: RecentActions): readonly Subscriber[] {
  const note = (action: ActionEnvelope, evaluation: Evaluation): void => {
    metrics.shadowLog.add(action, evaluation);
    recent.note(action, evaluation);
  };
  return [
    {
      evaluated: ({ protocol, phase }, { decision, durationUs }, trace) =>
        metrics.decided(protocol, phase, decision, durationUs, trace),
      finished: ({ protocol }, { status }) => metrics.settled(protocol, status),
      redacted: (protocol, places) => metrics.redacted(protocol, places),
    },
    liveSubscriber(live),
    {
      decided: note,
      finished: (action, _, judged) => {
        if (judged !== undefined) note(action, judged);
      },
    },
  ];
}
