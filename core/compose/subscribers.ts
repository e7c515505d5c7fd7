import type { Subscriber } from "../action/subscriber.ts";
import type { LiveFeed } from "../observe/live-feed.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { RecentActions } from "../observe/recent-action.ts";

/** The subscribers of the road: metrics, live feed, results of shadow rules, and the recent decisions to explain. */
export function subscribersOf(metrics: Metrics, live: LiveFeed, recent: RecentActions): readonly Subscriber[] {
  return [
    {
      evaluated: ({ protocol, phase }, { decision, durationUs }, trace) =>
        metrics.decided(protocol, phase, decision, durationUs, trace),
      decided: (action, evaluation) => {
        metrics.shadowLog.add(action, evaluation);
        recent.note(action, evaluation);
      },
      finished: (action, { status }, judged) => {
        metrics.settled(action.protocol, status);
        if (judged === undefined) return;
        metrics.shadowLog.add(action, judged);
        recent.note(action, judged);
      },
      redacted: (protocol, places) => metrics.redacted(protocol, places),
    },
    live,
  ];
}
