/** Logs a warning; `message` is a constant event name. */
export type WarningSink = (message: string, fields: object) => void;

const intervalMs = 60_000;

/**
 * Passes each message at once, and then once a minute with the number of suppressed ones; messages about webhooks per
 * webhook. Events that clients can cause a thousand times a second must not fill the log.
 */
export function limitWarnings(onWarning: WarningSink): WarningSink {
  const silent = new Map<string, { readonly until: number; held: number }>();
  return (message, fields) => {
    const now = performance.now();
    const subject = `${message} ${"webhook" in fields ? fields.webhook : ""}`;
    const last = silent.get(subject);
    if (last !== undefined && now < last.until) {
      last.held++;
      return;
    }
    silent.set(subject, { until: now + intervalMs, held: 0 });
    onWarning(message, last === undefined || last.held === 0 ? fields : { ...fields, unsaid: last.held });
  };
}
